-- Where in a trace a run's start, or its stop, was asked for (W3C Trace Context: traceparent, a space, tracestate), so that what
-- is done for it later, by another process, is a part of the same trace. Null while tracing is off.
ALTER TABLE sandbox.runs ADD COLUMN trace_context text;
