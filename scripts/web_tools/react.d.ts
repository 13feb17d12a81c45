// React as the host of other people's plugins uses it: the plugins bring their own types.
// biome-ignore lint/suspicious/noExplicitAny: what a plugin draws is not ours to type
declare const library: any;
export default library;
