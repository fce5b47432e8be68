/**
 * Most bytes of a file in one message between processes. With what is around them they just fit into 64 KiB: the buffer that a
 * message is written into doubles until all fits, so the last byte too many costs half of it.
 */
export const PIECE = 64 * 1024 - 64;
