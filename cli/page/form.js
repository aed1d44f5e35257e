// @ts-check
// Forms made from JSON Schemas, with the JSON of the whole value as an alternative.

import { button, fill, h, newId } from "./dom.js";
import { FieldError, json, readJson, removeButton, title, valueField } from "./fields.js";
import { write } from "./json.js";
import { choices, fits, isObject, resolve, text, typeOf, variants } from "./schema.js";

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {import("./fields.js").Field} Field
 * @typedef {import("./fields.js").Place} Place
 */

/** Deeper values are entered as JSON. */
const MAX_DEPTH = 8;

/**
 * Returns a form for the values of a schema. `read` returns the value, or null after it has shown what is wrong.
 * @param {Json} schema
 * @param {Json} [value]
 */
export function schemaForm(schema, value) {
  const resolved = resolve(schema, schema);
  const body = h("div", { class: "form-body" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  /** @type {Field} */
  let field;
  let isJson = false;
  /** @param {Json} given */
  const showForm = given => {
    field = part({ name: "", schema: { ...resolved, title: undefined, description: undefined }, root: schema, required: true, value: given, depth: 0, path: "" });
    fill(body, field.element);
  };
  /** @param {Json} given */
  const showJson = given => {
    const area = h("textarea", { class: "json", rows: 10, spellcheck: "false", autocomplete: "off", "aria-label": "Value as JSON", value: write(given ?? {}) });
    field = { element: area, read: () => (area.value.trim() ? readJson(area, "JSON") : {}) };
    fill(body, area);
  };
  /** @returns {{ value: Json } | null} */
  const read = () => {
    problem.hidden = true;
    body.querySelectorAll("[aria-invalid]").forEach(control => control.removeAttribute("aria-invalid"));
    try {
      return { value: field.read() ?? {} };
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      problem.textContent = error.message;
      problem.hidden = false;
      error.element.setAttribute("aria-invalid", "true");
      error.element.focus();
      return null;
    }
  };
  const toggle = button("Edit as JSON", () => {
    const current = read();
    // An incomplete value is not lost where the form can be read without it.
    if (!current && isJson) return;
    isJson = !isJson;
    toggle.setAttribute("aria-pressed", String(isJson));
    problem.hidden = true;
    if (isJson) showJson(current?.value ?? partial(field));
    else showForm(current?.value);
  }, { "aria-pressed": "false", class: "small" });
  showForm(value);
  return { element: h("div", { class: "form" }, body, problem), toggle, read };
}

/** @param {Field} field @returns {Json} */
function partial(field) {
  return "readPartial" in field ? /** @type {Json} */ (field).readPartial() : {};
}

/** @param {Place} given @returns {Field} */
function part(given) {
  const schema = resolve(given.schema, given.root);
  const place = { ...given, schema, value: given.value === undefined ? schema.default : given.value };
  if (place.depth >= MAX_DEPTH) return json(place);
  if (choices(schema)) return valueField(place, undefined);
  const alternatives = variants(schema, place.root);
  if (alternatives) return union(place, alternatives);
  const type = typeOf(schema);
  if (type === "object") return object(place);
  if (type === "array") return array(place);
  return valueField(place, type);
}

/** @param {Place} place @param {string} name @param {Json} schema @param {boolean} required @param {Json} value @returns {Place} */
function inner(place, name, schema, required, value) {
  return { name, schema, root: place.root, required, value, depth: place.depth + 1, path: `${place.path}/${name}` };
}

/** @param {Place} place @param {...(Node | null)} children */
function group(place, ...children) {
  if (!place.name) return h("div", { class: "group" }, ...children);
  const { description } = place.schema;
  return h("fieldset", {}, h("legend", {}, title(place), place.required && h("span", { class: "required" }, " *")), typeof description === "string" && h("p", { class: "hint" }, description), ...children);
}

/** @param {Place} place @returns {Field} */
function object(place) {
  const { schema } = place;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = isObject(schema.properties) ? schema.properties : {};
  const given = isObject(place.value) ? place.value : {};
  const names = Object.keys(properties);
  /** @type {Map<string, Field>} */
  const fields = new Map();
  for (const name of names) {
    const at = inner(place, name, properties[name], required.includes(name), given[name]);
    fields.set(name, required.includes(name) ? part(at) : optional(at));
  }
  const rest = Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)));
  const more = others(place, names, rest);
  const element = group(place, ...[...fields.values()].map(field => field.element), more?.element ?? null,
    !fields.size && !more ? h("p", { class: "empty" }, "No arguments.") : null);
  /** @param {(field: Field) => Json} readField */
  const collect = readField => {
    const read = [...fields].map(([name, field]) => /** @type {const} */ ([name, readField(field)]));
    return { ...Object.fromEntries(read.filter(entry => entry[1] !== undefined)), ...(more ? readField(more) : {}) };
  };
  const readPartial = () => collect(field => {
    try {
      return field.read();
    } catch {
      return undefined;
    }
  });
  return Object.assign({ element, read: () => collect(field => field.read()) }, { readPartial });
}

/**
 * Members beside the properties, where the schema describes them or allows nothing else.
 * @param {Place} place
 * @param {string[]} names
 * @param {Record<string, Json>} given
 * @returns {Field | null}
 */
function others(place, names, given) {
  const schema = place.schema.additionalProperties;
  const isOpen = isObject(schema) || (schema === true && !names.length) || (schema === undefined && !names.length && place.depth > 0);
  if (!isOpen && !Object.keys(given).length) return null;
  /** @type {Map<HTMLElement, { name: HTMLInputElement, field: Field }>} */
  const entries = new Map();
  const list = h("div");
  /** @param {string} key @param {Json} value */
  const addEntry = (key, value) => {
    const name = h("input", { type: "text", "aria-label": "Name", placeholder: "Name", value: key });
    const field = part(inner(place, "Value", isObject(schema) ? schema : {}, true, value));
    const row = h("div", { class: "entry" }, name, field.element);
    row.append(removeButton("this member", () => {
      entries.delete(row);
      row.remove();
    }));
    entries.set(row, { name, field });
    list.append(row);
  };
  for (const [key, value] of Object.entries(given)) addEntry(key, value);
  const element = h("div", { class: "others" }, list, button("Add a member", () => addEntry("", undefined), { class: "small" }));
  const read = () => Object.fromEntries([...entries.values()].map(({ name, field }) => {
    if (!name.value) throw new FieldError("a member has no name", name);
    return [name.value, field.read()];
  }));
  return { element, read };
}

/**
 * An optional member. Groups are made when they are wanted, since schemas may contain themselves.
 * @param {Place} place
 * @returns {Field}
 */
function optional(place) {
  const schema = resolve(place.schema, place.root);
  // `string | null` needs no choice of a variant: a value that is left out is as good as null.
  const others = variants(schema, place.root);
  const only = others?.filter(variant => typeOf(variant.schema) !== "null") ?? [];
  if (others?.length === 2 && only.length === 1) {
    const { title: name, description } = schema;
    return optional({ ...place, schema: { ...only[0]?.schema, ...(name && { title: name }), ...(description && { description }) }, value: place.value ?? undefined });
  }
  const isGroup = !choices(schema) && (typeOf(schema) === "object" || typeOf(schema) === "array" || variants(schema, place.root) !== null);
  if (!isGroup) return part(place);
  const element = h("div", { class: "optional" });
  /** @type {Field | null} */
  let field = null;
  const show = (/** @type {Json} */ value) => {
    field = part({ ...place, required: true, value });
    fill(element, field.element, removeButton(place.name, hide));
  };
  const hide = () => {
    field = null;
    const description = typeof schema.description === "string" ? h("span", { class: "hint" }, ` ${schema.description}`) : null;
    fill(element, h("span", { class: "label" }, place.name), h("span", { class: "type" }, " not set "), button("Add", () => show(undefined), { "aria-label": `Add ${place.name}`, class: "small" }), description);
  };
  const value = place.value === undefined ? schema.default : place.value;
  if (value === undefined || value === null) hide();
  else show(value);
  return { element, read: () => field?.read() };
}

/** @param {Place} place @returns {Field} */
function array(place) {
  const { schema } = place;
  const items = resolve(schema.items ?? {}, place.root);
  if (schema.uniqueItems === true && choices(items)) return selection(place, items);
  // Elicitation forms have arrays of choices without `uniqueItems`.
  if (Array.isArray(items.anyOf) && choices(items)) return selection(place, items);
  const tuple = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const given = Array.isArray(place.value) ? place.value : [];
  /** @type {Map<HTMLElement, Field>} */
  const entries = new Map();
  const list = h("div", { class: "items" });
  /** @param {Json} itemSchema @param {Json} value @param {boolean} isFixed */
  const addItem = (itemSchema, value, isFixed) => {
    const field = part(inner(place, `${place.name || "Item"} ${entries.size + 1}`, itemSchema, true, value));
    const row = h("div", { class: "entry" }, field.element);
    if (!isFixed) {
      row.append(removeButton("this item", () => {
        entries.delete(row);
        row.remove();
      }));
    }
    entries.set(row, field);
    list.append(row);
    return row;
  };
  tuple.forEach((/** @type {Json} */ item, /** @type {number} */ index) => addItem(item, given[index], true));
  const least = Math.min(Number(schema.minItems) || 0, 20);
  const count = Math.max(given.length, least);
  for (let index = tuple.length; index < count; index += 1) addItem(schema.items ?? {}, given[index], false);
  const more = schema.items === false || (tuple.length && schema.items === undefined) ? null : button("Add an item", () => {
    const row = addItem(schema.items ?? {}, undefined, false);
    /** @type {HTMLElement | null} */ (row.querySelector("input, textarea, select"))?.focus();
  }, { class: "small" });
  return { element: group(place, list, more), read: () => [...entries.values()].map(field => field.read()) };
}

/**
 * Several of some fixed values.
 * @param {Place} place
 * @param {Json} items
 * @returns {Field}
 */
function selection(place, items) {
  const options = choices(items) ?? [];
  const given = Array.isArray(place.value) ? place.value.map(text) : [];
  const boxes = options.map(option => h("input", { type: "checkbox", id: newId(), checked: given.includes(text(option.value)) }));
  const element = group(place, ...options.map((option, index) =>
    h("div", { class: "check field" }, h("label", { for: boxes[index]?.id }, option.label), boxes[index])));
  return { element, read: () => options.filter((_, index) => boxes[index]?.checked).map(option => option.value) };
}

/** @param {Place} place @param {import("./schema.js").Variant[]} alternatives @returns {Field} */
function union(place, alternatives) {
  const { value } = place;
  const found = value === undefined ? -1 : alternatives.findIndex(alternative => fits(value, alternative.schema, place.root));
  const select = h("select", { id: newId(), "aria-label": `Form of ${place.name || "the value"}` },
    ...alternatives.map((alternative, index) => h("option", { value: index }, alternative.label)));
  const body = h("div");
  /** @type {Field} */
  let field;
  /** @param {Json} given */
  const show = given => {
    const chosen = alternatives[Number(select.value)];
    // A group has no frame of its own within that of the variants.
    const isGroup = ["object", "array"].includes(typeOf(chosen?.schema ?? {}) ?? "");
    field = part({ ...place, name: isGroup ? "" : place.name || "Value", schema: { title: undefined, ...chosen?.schema }, value: given, depth: place.depth + 1 });
    fill(body, field.element);
  };
  select.addEventListener("change", () => show(undefined));
  select.value = String(Math.max(found, 0));
  show(found < 0 ? undefined : value);
  const element = group(place, select, body);
  return { element, read: () => field.read() };
}
