import manifest from "../package.json" with { type: "json" };

/** Which Sandgate this is, such as `0.1.0`. */
export const RELEASE: string = manifest.version;
