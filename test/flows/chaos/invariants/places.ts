import { wrongPlaces } from "../../../support/places.ts";
import type { Facts } from "../facts.ts";

/** No organization's places were leaked, or given back twice. */
export function placesMatch({ places }: Facts): string[] {
  return wrongPlaces(places);
}
