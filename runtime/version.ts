import own from "../package.json" with { type: "json" };

/** Of this program, such as `0.1.0`. */
export const VERSION: string = own.version;
