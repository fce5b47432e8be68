import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  type ConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type MethodImplSpec,
} from "@connectrpc/connect";

/** Registers the implementations of services: `(router) => router.service(SandboxService, …)`. */
export type Routes = (router: ConnectRouter) => void;

/** The implementations that `routes` registers, by method. */
export function collectMethods(routes: Routes): ReadonlyMap<DescMethod, MethodImplSpec> {
  const methods = new Map<DescMethod, MethodImplSpec>();
  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation) {
      const specs = Object.values(createServiceImplSpec(service, implementation).methods);
      for (const spec of specs) methods.set(spec.method, spec);
      return router;
    },
    rpc(method, implementation) {
      methods.set(method, createMethodImplSpec(method, implementation));
      return router;
    },
  };
  routes(router);
  return methods;
}

/** The services of which `routes` registers methods. */
export function collectServices(routes: Routes): DescService[] {
  return [...new Set([...collectMethods(routes).keys()].map(({ parent }) => parent))];
}
