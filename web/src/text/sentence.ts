/** What a machine or the server wrote, as a sentence: with a capital letter and a full stop. */
export function sentence(message: string): string {
  const text = message.trim();
  if (text === "") return "";
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}
