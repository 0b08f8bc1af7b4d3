/**
 * What is not mutated: text for people. A test that repeats a sentence word by word holds nothing but the sentence. Codes,
 * reasons and names that programs read have no space between words, and are mutated.
 */
const WORDS = /\p{L}\p{P}* | {1,2}\p{L}/u;

/** Whether a node of Babel is a string or a template with a word beside a space. */
export function isText(node) {
  if (node.type === 'StringLiteral') return WORDS.test(node.value);
  if (node.type !== 'TemplateLiteral') return false;
  return WORDS.test(node.quasis.map((part) => part.value.raw).join('\u0000'));
}
