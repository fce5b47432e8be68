/**
 * Connections that the kernel keeps until the program takes them, as far as the kernel's own limit (`net.core.somaxconn`)
 * allows. At Node's 511 a thousand clients that come at once to a busy program are reset.
 */
export const BACKLOG = 4_096;
