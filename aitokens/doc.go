// SPDX-License-Identifier: Apache-2.0

// Package aitokens counts the tokens of a prompt with the vocabularies of tiktoken, which OpenAI's models use. The
// vocabularies are in the program: no file and no network is necessary.
//
//	counter := aitokens.New()
//	…
//	hold := counter.Estimate(request) + request.Completion(1000)
//
// The count is exact for a plain text of an OpenAI model. For a request it is an estimate, because providers add tokens
// around messages and tools. It is also an estimate for models with other vocabularies, such as Claude, Gemini and
// Llama: see [Counter.Count].
package aitokens
