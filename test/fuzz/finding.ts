/** Something that is wrong, as small as it could be made. */
export interface Finding {
  operation: string;
  fault: string;
  /** A line for a shell. */
  curl: string;
  answer: string;
}
