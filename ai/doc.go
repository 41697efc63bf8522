// SPDX-License-Identifier: Apache-2.0

// Package ai reads the tokens that requests to language models ask for and that their responses report. It reads six
// wire formats, as JSON and as streams, without a copy of the response:
//
//	format, ok := ai.DetectFormat(r.Method, r.URL.Path)
//	request, err := ai.ReadRequest(format, r.URL.Path, body, int64(len(body)))
//	hold := ai.SimpleWord(request) + request.Completion(1000)
//	…
//	reader := ai.NewReader(format, response.Header.Get("Content-Type"), response.Header.Get("Content-Encoding"))
//	defer reader.Close()
//	io.Copy(w, io.TeeReader(response.Body, reader))
//	result := reader.Result()
//
// # Usage
//
// A [Usage] has disjoint classes: no token is in two of them. The providers differ: OpenAI's cached tokens are part of
// the prompt's tokens, Anthropic's are not, and Gemini reports its thoughts apart from the answer. A stream may report
// usage several times. The values are cumulative, so the last one counts, for each member by itself.
//
// Usage can be missing: OpenAI streams report it only on request ([AskForUsage]), and a client can disconnect before
// the last event. For these cases the [Result] has the text that the client received. [Ratios] converts it to tokens.
//
// # Requests
//
// A request counts the text of its messages, system prompts and tools. Images, audio and files are no text: each counts
// [MediaTokens]. The package parses up to [MaxRequestBytes]. In a longer request, each byte counts as one character,
// which is too much rather than nothing.
//
// # Cut streams
//
// A proxy can end a stream early. [Reader.EventEnd] tells where the last complete event ends. [Reader.AppendEnd] and
// [Reader.AppendError] write the remaining events of the format.
package ai
