import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import type { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { requireCaller } from "../../../runtime/rpc/context.ts";
import type { FakeIdempotency } from "./fake-idempotency.ts";

type Organizations = Partial<ServiceImpl<typeof OrganizationService>>;
type Billing = Partial<ServiceImpl<typeof BillingService>>;

/** Of an organization that has nothing and did nothing, where a test does not say otherwise. */
export class FakeAccounts {
  /** Every call to what is here, in order. */
  readonly calls: { method: string; request: unknown; caller: Caller }[] = [];
  readonly #given: { organization: Organizations; billing: Billing; idempotency: FakeIdempotency };

  /** @param given replaces what a method does */
  constructor(given: {
    organization: Organizations;
    billing: Billing;
    idempotency: FakeIdempotency;
  }) {
    this.#given = given;
  }

  organizations(): Organizations {
    const { organization, idempotency } = this.#given;
    return {
      listMembers: this.#seen("listMembers", organization, async () => ({ members: [] })),
      listEvents: this.#seen("listEvents", organization, async () => ({ events: [] })),
      getEvent: this.#seen("getEvent", organization, async () => {
        throw new ServiceError("EVENT_NOT_FOUND", "no such event");
      }),
      keepAnswer: this.#seen("keepAnswer", organization, async (request, context) => {
        const { orgId } = requireCaller(context);
        return idempotency.keepAnswer(orgId, request.idempotencyKey, request.answer);
      }),
    };
  }

  billing(): Billing {
    const { billing } = this.#given;
    const at = { seconds: 0n, nanos: 0 };
    return {
      getQuotas: this.#seen("getQuotas", billing, async () => ({ limits: {} })),
      getUsage: this.#seen("getUsage", billing, async () => ({ periodStart: at, periodEnd: at })),
      listSandboxUsage: this.#seen("listSandboxUsage", billing, async () => ({})),
      listStorageUsage: this.#seen("listStorageUsage", billing, async () => ({})),
    };
  }

  /** Notes the call, and lets a test answer in place of the fake. */
  #seen<S extends object, M extends keyof S & string>(
    method: M,
    given: S,
    answer: NonNullable<S[M]>,
  ): NonNullable<S[M]> {
    const noted = (request: never, context: HandlerContext) => {
      this.calls.push({ method, request, caller: requireCaller(context) });
      const act = (given[method] ?? answer) as (r: never, c: HandlerContext) => unknown;
      return act(request, context);
    };
    return noted as NonNullable<S[M]>;
  }
}
