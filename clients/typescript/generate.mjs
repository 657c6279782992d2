// Writes src/api.ts, the types of requests and answers, from docs/openapi.json, with openapi-typescript.
//
//     node generate.mjs            writes the file; `make clients-generate-typescript` runs it
//     node generate.mjs --check    writes nothing, and fails if the file is not current
//
// The document is made simpler first, by rules that make the types pleasant to use:
//
// - Integers are `number | bigint`. The service writes those beyond 2^53 as strings; the client turns them
//   back, in the places of an answer that SHAPES names.
// - Times may be given as `Date`, and are strings in answers.
// - The variants of an answer become one type. A field that some variants lack is optional.
// - The parameters of a query that may be left out have a type of their own for each request. Those that have
//   to be there are arguments of the client's methods.

import { readFileSync, writeFileSync } from "node:fs";

import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const DOCUMENT = new URL("../../docs/openapi.json", import.meta.url);
const TYPES = new URL("src/api.ts", import.meta.url);

// Routes that return something else than JSON, or that `ranktree snapshot` is for.
const LEFT_OUT = /^\/(openapi\.json|docs|metrics|healthz|readyz|v1\/snapshots.*)$/;
// Differences of positions have 64 bits in the document, and never come near 2^53.
const SMALL = new Set(["movement"]);
// Schemas that the client converts, and what they are in TypeScript.
const keyword = (kind) => ts.factory.createKeywordTypeNode(ts.SyntaxKind[kind]);
const integer = ts.factory.createUnionTypeNode([keyword("NumberKeyword"), keyword("BigIntKeyword")]);
const date = ts.factory.createTypeReferenceNode("Date");
const CONVERTED = {
  Integer: integer,
  IntegerInput: integer,
  Version: integer,
  TimeInput: ts.factory.createUnionTypeNode([keyword("StringKeyword"), date]),
};

const document = JSON.parse(readFileSync(DOCUMENT, "utf8"));
const schemas = document.components.schemas;

const name = (schema) => schema.$ref.split("/").pop();
const resolved = (schema) => (schema.$ref ? resolved(schemas[name(schema)]) : schema);

/** The names of the schemas that `schema` refers to, and those that they refer to. */
function reached(schema, found = new Set()) {
  if (schema && typeof schema === "object") {
    if (schema.$ref?.startsWith("#/components/schemas/") && !found.has(name(schema))) {
      found.add(name(schema));
      reached(schemas[name(schema)], found);
    }
    Object.values(schema).forEach((inner) => reached(inner, found));
  }
  return found;
}

/** The objects that a schema allows; none if it allows anything else. */
function variants(schema) {
  schema = resolved(schema);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) {
    const found = choices.map(variants);
    return found.every((one) => one.length) ? found.flat() : [];
  }
  return schema.properties ? [schema] : [];
}

/** One object for several variants of it. */
function merged(description, objects) {
  const properties = {};
  for (const object of objects) {
    for (const [field, schema] of Object.entries(object.properties)) {
      const known = properties[field] ?? [];
      const isNew = known.every((other) => JSON.stringify(other) !== JSON.stringify(schema));
      properties[field] = isNew ? [...known, schema] : known;
    }
  }
  const isRequired = (field) => objects.every((object) => object.required?.includes(field));
  const one = ([field, kinds]) => {
    const told = kinds.find((kind) => kind.description)?.description;
    return [field, kinds.length === 1 ? kinds[0] : { description: told, anyOf: kinds }];
  };
  return {
    type: "object",
    description,
    required: Object.keys(properties).filter(isRequired),
    properties: Object.fromEntries(Object.entries(properties).map(one)),
  };
}

/** Changes a schema that callers send: times may be dates, and what is only read is not there. */
function asInput(schema) {
  if (!schema || typeof schema !== "object") return;
  if (schema.$ref && name(schema) === "Time") schema.$ref = "#/components/schemas/TimeInput";
  for (const [field, inner] of Object.entries(schema.properties ?? {})) {
    if (inner.readOnly) delete schema.properties[field];
  }
  Object.values(schema).forEach(asInput);
}

/** Changes a schema of answers: variants become one object, and free JSON is anything. */
function asAnswer(schema) {
  if (!schema || typeof schema !== "object") return;
  const objects = schema.anyOf || schema.oneOf ? variants(schema) : [];
  if (objects.length > 1) {
    const one = merged(schema.description, objects);
    delete schema.anyOf;
    delete schema.oneOf;
    Object.assign(schema, one);
  }
  Object.values(schema).forEach(asAnswer);
}

/** Changes a schema of answers: what has 64 bits is an integer as scores are, a string beyond 2^53. */
function asIntegers(schema) {
  if (!schema || typeof schema !== "object") return;
  for (const [field, inner] of Object.entries(schema.properties ?? {})) {
    if (!/^u?int64$/.test(inner.format) || SMALL.has(field)) continue;
    schema.properties[field] = {
      description: inner.description,
      allOf: [{ $ref: "#/components/schemas/Integer" }],
    };
  }
  Object.values(schema).forEach(asIntegers);
}

/** What is a number, and a string beyond 2^53: alone, or in the array that a score of several keys is. */
const INTEGERS = new Set(["Integer", "Score", "Version"]);

/** Where the integers are in what a schema describes; `undefined` if there are none. */
function shapeOf(schema) {
  if (schema.$ref) {
    if (INTEGERS.has(name(schema))) return "integer";
    return [...reached(schema)].some((one) => INTEGERS.has(one)) ? name(schema) : undefined;
  }
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices) {
    const found = choices.map(shapeOf).reduce(together, undefined);
    if (found === "integer" && choices.some((one) => resolved(one).type === "string")) {
      throw new Error(`integers or text: ${JSON.stringify(schema)}`);
    }
    return found;
  }
  if (schema.properties) {
    const fields = Object.entries(schema.properties).map(([field, inner]) => [field, shapeOf(inner)]);
    const shaped = fields.filter(([, shape]) => shape !== undefined);
    return shaped.length ? { fields: Object.fromEntries(shaped) } : undefined;
  }
  // The keys of a map are callers' names.
  const inner = schema.items ?? schema.additionalProperties;
  const each = inner && typeof inner === "object" ? shapeOf(inner) : undefined;
  return each === undefined ? undefined : { each };
}

/** The shape of what has one of two. */
function together(one, other) {
  if (one === undefined || other === undefined || JSON.stringify(one) === JSON.stringify(other)) {
    return one ?? other;
  }
  throw new Error(`two shapes at one place: ${JSON.stringify(one)}, ${JSON.stringify(other)}`);
}

const operations = Object.entries(document.paths)
  .filter(([path]) => !LEFT_OUT.test(path))
  .flatMap(([, methods]) => Object.values(methods));

const inputs = reached(operations.map((operation) => operation.requestBody));
const outputs = reached(
  operations.map((operation) => Object.entries(operation.responses).filter(([status]) => status[0] === "2")),
);
outputs.add("Problem");
const both = [...inputs].filter((one) => outputs.has(one) && variants(schemas[one]).length);
if (both.length) throw new Error(`${both} are sent and answered; that is not foreseen`);

for (const operation of operations) {
  // A write that is stored and not applied yet is answered with 202 and a token alone.
  const [written, accepted] = ["200", "202"].map((status) => {
    return operation.responses[status]?.content?.["application/json"]?.schema;
  });
  if (accepted) {
    const objects = [...variants(written), ...variants(accepted)];
    schemas[name(written)] = merged(schemas[name(written)].description, objects);
  }
}
schemas.TimeInput = { ...schemas.Time, description: "RFC 3339 with any offset, or a `Date`." };
inputs.forEach((one) => asInput(schemas[one]));
outputs.forEach((one) => asAnswer(schemas[one]));
outputs.forEach((one) => asIntegers(schemas[one]));
const shapes = [...outputs]
  .filter((one) => !INTEGERS.has(one))
  .sort()
  .map((one) => [one, shapeOf(schemas[one])])
  .filter(([, shape]) => shape !== undefined);
for (const one of Object.keys(schemas)) {
  if (!inputs.has(one) && !outputs.has(one) && one !== "TimeInput") delete schemas[one];
}

/** The parameters of a request's query that may be left out. */
function queryOf(operation) {
  const found = (operation.parameters ?? []).map((parameter) => {
    return parameter.$ref ? document.components.parameters[parameter.$ref.split("/").pop()] : parameter;
  });
  return found.filter((parameter) => parameter.in === "query" && !parameter.required);
}

const camel = (text) =>
  text
    .split("_")
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join("");
for (const operation of operations) {
  const parameters = queryOf(operation);
  if (parameters.length) {
    schemas[`${camel(operation.operationId)}Query`] = {
      type: "object",
      description: `What \`${operation.operationId}\` may be asked with.`,
      properties: Object.fromEntries(
        parameters.map(({ name: field, description, schema }) => [
          field,
          schema.$ref ? { description, allOf: [schema] } : { ...schema, description },
        ]),
      ),
    };
  }
}

const ast = await openapiTS(
  { openapi: document.openapi, info: document.info, paths: {}, components: { schemas } },
  {
    defaultNonNullable: false,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    transform(schema, { path }) {
      return CONVERTED[path?.match(/^#\/components\/schemas\/(\w+)$/)?.[1]];
    },
  },
);
const text = `// The types of requests and answers. \`make clients-generate-typescript\` writes this file: do not edit it.

/**
 * Where the integers of an answer are, which are strings beyond 2^53 - 1. A shape is \`"integer"\`, the name of
 * another one, the shapes of an object's fields, or that of each part of a list, or of a map whose keys are
 * callers' names. What has none is left as it is.
 */
type Shape = string | { readonly fields: Shapes } | { readonly each: Shape };
type Shapes = { readonly [name: string]: Shape };
export const SHAPES: Shapes = {
${shapes.map(([one, shape]) => `  ${one}: ${JSON.stringify(shape)},`).join("\n")}
};

${astToString(ast)}`;

if (process.argv.includes("--check")) {
  if (readFileSync(TYPES, "utf8") !== text) {
    console.error("src/api.ts is not current: run make clients-generate-typescript");
    process.exitCode = 1;
  }
} else {
  writeFileSync(TYPES, text);
}
