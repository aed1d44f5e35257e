// @ts-check
// Inputs whose values the server completes.

import { call, capabilities } from "./api.js";
import { fill, h, named, newId } from "./dom.js";

/** @typedef {import("./dom.js").Json} Json */

const PAUSE = 200;

/**
 * Returns inputs for named texts, with the completions of the server where it has some.
 * @param {Json[]} fields Objects with `name`, and perhaps `description` and `required`.
 * @param {(argument: string, value: string, given: Record<string, string>) => Json} operation Describes a completion.
 */
export function completedInputs(fields, operation) {
  /** @type {Map<string, HTMLInputElement>} */
  const inputs = new Map();
  const given = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.value]).filter(([, value]) => value));
  const rows = fields.map(field => {
    const name = String(field.name);
    const list = h("datalist", { id: newId() });
    const status = h("span", { class: "hint", role: "status" });
    const input = h("input", { type: "text", id: newId(), autocomplete: "off", spellcheck: "false", list: list.id, "aria-required": field.required === true ? "true" : null });
    inputs.set(name, input);
    complete(input, list, status, () => {
      const { [name]: _, ...others } = given();
      return operation(name, input.value, others);
    });
    const description = typeof field.description === "string" && field.description ? h("p", { class: "hint" }, field.description) : null;
    return h("div", { class: "field" },
      h("label", { for: input.id }, named(name, field.title), field.required === true && h("span", { class: "required" }, " *")), description, input, list, status);
  });
  return { element: h("div", { class: "form-body" }, ...rows), read: given };
}

/**
 * @param {HTMLInputElement} input
 * @param {HTMLDataListElement} list
 * @param {HTMLElement} status
 * @param {() => Json} operation
 */
function complete(input, list, status, operation) {
  let timer = 0;
  let asked = 0;
  const ask = async () => {
    if (!capabilities().completions) return;
    asked += 1;
    const own = asked;
    try {
      const result = await call(operation());
      // Other answers may have overtaken this one.
      if (own !== asked) return;
      const completion = result?.completion ?? result;
      const values = Array.isArray(completion?.values) ? completion.values.map(String) : [];
      fill(list, ...values.map((/** @type {string} */ value) => h("option", { value })));
      const total = completion?.total ?? values.length;
      status.textContent = values.length ? `${total} completion${total === 1 ? "" : "s"}: ${values.slice(0, 5).join(", ")}${values.length > 5 ? ", …" : ""}` : "No completions";
    } catch (error) {
      status.textContent = /** @type {Error} */ (error).message;
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(), PAUSE);
  });
  input.addEventListener("focus", () => void ask());
}
