// @ts-check
// Fields of forms for single values: texts, numbers, choices, files, and JSON.

import { button, decode, formatSize, h, named, newId } from "./dom.js";
import { number, parse, write } from "./json.js";
import { choices, limits, text } from "./schema.js";

/**
 * A part of a form. `read` returns the value, or undefined where none is given, and throws a `FieldError`.
 * @typedef {import("./dom.js").Json} Json
 * @typedef {{ element: HTMLElement, read: () => Json }} Field
 * @typedef {{ name: string, schema: Json, root: Json, required: boolean, value: Json, depth: number, path: string }} Place
 */

/** A value that is missing or wrong, with the element that shows it. */
export class FieldError extends Error {
  /** @param {string} message @param {HTMLElement} element */
  constructor(message, element) {
    super(message);
    this.element = element;
  }
}

const BINARY_FORMATS = ["byte", "base64", "binary"];
/** @type {Record<string, string>} */
const INPUT_TYPES = { date: "date", email: "email", uri: "url", password: "password", color: "color" };

/**
 * Returns the field of a schema without properties, items and variants.
 * @param {Place} place
 * @param {string | undefined} type
 * @returns {Field}
 */
export function valueField(place, type) {
  const { schema } = place;
  if (choices(schema)) return choice(place);
  if (type === "boolean") return truth(place);
  if (type === "integer" || type === "number") return numeral(place, type);
  if (type === "null") return { element: h("p", { class: "empty" }, `${place.name}: null`), read: () => null };
  if (type !== "string") return json(place);
  return schema.contentEncoding === "base64" || BINARY_FORMATS.includes(schema.format) ? file(place) : string(place);
}

/**
 * Puts an input below its label, with its description and a place for an error.
 * @param {Place} place
 * @param {HTMLElement} input
 * @param {string} type
 * @param {...HTMLElement} more
 */
function labelled(place, input, type, ...more) {
  const { schema, required } = place;
  input.id = newId();
  input.dataset.path = place.path;
  const description = typeof schema.description === "string" ? schema.description : "";
  const bounds = limits(schema);
  const hint = h("p", { class: "hint", id: newId() }, description, description && bounds && " ", bounds && `(${bounds})`);
  if (hint.textContent) input.setAttribute("aria-describedby", hint.id);
  if (required) input.setAttribute("aria-required", "true");
  const label = h("label", { for: input.id }, title(place), required && h("span", { class: "required", title: "Required" }, " *"), h("span", { class: "type" }, ` ${type}`));
  return h("div", { class: "field" }, label, hint.textContent ? hint : null, input, ...more);
}

/** @param {Place} place */
export function title(place) {
  return named(place.name, place.schema.title) || "Value";
}

/** @param {Place} place @returns {Field} */
function choice(place) {
  const options = choices(place.schema) ?? [];
  const selected = options.findIndex(option => place.value !== undefined && text(option.value) === text(place.value));
  const isOnly = options.length === 1 && place.required;
  const select = h("select", {},
    !isOnly && h("option", { value: "" }, place.required ? "Choose …" : "Not set"),
    ...options.map((option, index) => h("option", { value: index, selected: index === selected || isOnly }, option.label)));
  const element = labelled(place, select, "choice");
  const read = () => {
    if (select.value !== "") return options[Number(select.value)]?.value;
    return missing(place, select);
  };
  return { element, read };
}

/** @param {Place} place @returns {Field} */
function truth(place) {
  if (place.required || typeof place.value === "boolean") {
    const box = h("input", { type: "checkbox", checked: place.value === true });
    const element = labelled(place, box, "boolean");
    element.classList.add("check");
    return { element, read: () => box.checked };
  }
  const select = h("select", {}, ...["Not set", "true", "false"].map(label => h("option", { value: label }, label)));
  return { element: labelled(place, select, "boolean"), read: () => (select.value === "Not set" ? undefined : select.value === "true") };
}

/** @param {Place} place @param {string} type @returns {Field} */
function numeral(place, type) {
  const input = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value: place.value === undefined ? "" : JSON.stringify(place.value) });
  const read = () => {
    const written = input.value.trim();
    if (!written) return missing(place, input);
    // The grammar of JSON's numbers.
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(written)) throw new FieldError(`${place.name}: ${written} is not a number, such as 12 or -1.5`, input);
    if (type === "integer" && !/^-?\d+(\.0+)?$/.test(written)) throw new FieldError(`${place.name}: ${written} is not an integer`, input);
    return number(written);
  };
  return { element: labelled(place, input, type), read };
}

/** @param {Place} place @returns {Field} */
function string(place) {
  const { schema } = place;
  const value = place.value === undefined ? "" : text(place.value);
  const kind = INPUT_TYPES[schema.format] ?? null;
  const isDate = schema.format === "date-time";
  const input = kind || isDate
    ? h("input", { type: kind ?? "text", autocomplete: "off", placeholder: isDate ? "2026-01-31T12:00:00Z" : null, value })
    : h("textarea", { rows: value.includes("\n") || Number(schema.maxLength) > 200 ? 4 : 1, autocomplete: "off", spellcheck: "false", value });
  // An optional text that is empty is left out; the JSON of the form can have one.
  const read = () => (input.value || (place.required && place.value !== null) ? input.value : undefined);
  return { element: labelled(place, input, schema.format ?? "string"), read };
}

/** @param {Place} place @returns {Field} */
function file(place) {
  const area = h("textarea", { rows: 2, autocomplete: "off", spellcheck: "false", value: place.value ?? "" });
  const size = h("span", { class: "hint", role: "status" });
  const picker = h("input", { type: "file", "aria-label": `File for ${place.name}`, change: async () => {
    const chosen = picker.files?.[0];
    if (!chosen) return;
    area.value = await base64(chosen);
    size.textContent = `${chosen.name}, ${formatSize(chosen.size)}`;
  } });
  const read = () => {
    const written = area.value.trim();
    if (!written) return missing(place, area);
    if (!decode(written)) throw new FieldError(`${place.name}: this is not base64; choose a file instead`, area);
    return written;
  };
  return { element: labelled(place, area, "file, as base64", h("div", { class: "row" }, picker, size)), read };
}

/** @param {Blob} blob @returns {Promise<string>} */
function base64(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(String(reader.result).split(",", 2)[1] ?? ""));
    reader.addEventListener("error", () => failed(reader.error));
    reader.readAsDataURL(blob);
  });
}

/**
 * A value as JSON, for schemas that say nothing of it.
 * @param {Place} place
 * @returns {Field}
 */
export function json(place) {
  const area = h("textarea", { class: "json", rows: 3, autocomplete: "off", spellcheck: "false", value: place.value === undefined ? "" : write(place.value) });
  return { element: labelled(place, area, "JSON"), read: () => (area.value.trim() ? readJson(area, place.name) : missing(place, area)) };
}

/**
 * Reads the JSON of a text area.
 * @param {HTMLTextAreaElement} area
 * @param {string} name
 * @returns {Json}
 */
export function readJson(area, name) {
  try {
    return parse(area.value);
  } catch (error) {
    throw new FieldError(`${name}: ${/** @type {Error} */ (error).message}`, area);
  }
}

/** @param {Place} place @param {HTMLElement} input @returns {undefined} */
function missing(place, input) {
  if (place.required) throw new FieldError(`${place.name} is required`, input);
  return undefined;
}

/**
 * Returns the buttons that add or remove an optional part.
 * @param {string} name
 * @param {() => void} remove
 */
export function removeButton(name, remove) {
  return button("Remove", remove, { "aria-label": `Remove ${name}`, class: "small" });
}
