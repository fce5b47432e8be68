import { asRecord, type RuleFault, textFault, utf8Length } from "../../../validation/rule.ts";

const RESERVED_LABELS = ["sandbox.", "microsandbox.", "service."];
const MAX_LABELS = 64;
const MAX_LABEL_KEY = 128;
const MAX_LABEL_VALUE = 1024;
const MAX_FILE_NAME = 255;

/** Of a variable that a create may set. */
export function envKeyFault(value: unknown): string | undefined {
  if (typeof value === "string" && value.startsWith("MSB_")) return "must not begin with MSB_";
  return variableFault(value);
}

/** Of any environment variable's name; that it is not empty is said elsewhere. */
export function variableFault(value: unknown): string | undefined {
  if (typeof value === "string" && value.includes("=")) return "must not contain `=`";
  return textFault(value);
}

export function labelFaults(value: unknown): RuleFault[] {
  const labels = Object.entries(asRecord(value) ?? {});
  const faults = labels.flatMap(([key, label]) => toFaults(key, labelFault(key, label)));
  return labels.length > MAX_LABELS
    ? [{ at: [], message: `must have at most ${MAX_LABELS} labels` }, ...faults]
    : faults;
}

function labelFault(key: string, label: unknown): string | undefined {
  if (key === "") return "key must not be empty";
  if (utf8Length(key) > MAX_LABEL_KEY) return `key must have at most ${MAX_LABEL_KEY} bytes`;
  const reserved = RESERVED_LABELS.find((prefix) => key.startsWith(prefix));
  if (reserved) return `prefix ${reserved} is reserved`;
  if (typeof label === "string" && utf8Length(label) > MAX_LABEL_VALUE)
    return `must have at most ${MAX_LABEL_VALUE} bytes`;
  return mapKeyFault(key);
}

export function scriptFaults(value: unknown): RuleFault[] {
  const names = Object.keys(asRecord(value) ?? {});
  return names.flatMap((name) => toFaults(name, scriptNameFault(name)));
}

function scriptNameFault(name: string): string | undefined {
  const single = name !== "" && name !== "." && name !== ".." && !name.includes("/");
  if (!single || utf8Length(name) > MAX_FILE_NAME) return "key must be a single file name";
  return mapKeyFault(name);
}

/** Of a label that a list filters by. */
export function filterFaults(value: unknown): RuleFault[] {
  return Object.keys(asRecord(value) ?? {}).flatMap((key) => toFaults(key, mapKeyFault(key)));
}

// In a plain object, which protobuf maps are, `__proto__` is no key like others.
function mapKeyFault(key: string): string | undefined {
  if (key === "__proto__") return "key is reserved";
  const fault = textFault(key);
  return fault && `key ${fault}`;
}

function toFaults(key: string, message: string | undefined): RuleFault[] {
  return message === undefined ? [] : [{ at: [key], message }];
}
