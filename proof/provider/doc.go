// SPDX-License-Identifier: Apache-2.0

// Package provider simulates providers of language models, and tests budgets of tokens with them. A [Simulator] speaks six
// formats as JSON and as streams: OpenAI chat, completions and responses, Anthropic messages, Gemini, and Bedrock Converse. It
// does not share code with package ai.
//
// A token of the simulator has four characters. So each estimate by characters is exact, and every difference between a
// charge and the sent tokens is an error. The header X-Plan of a request is its [Plan].
package provider
