// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/trace"
)

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *replayCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "replay")
	fs.StringVar(&c.policy, "policy", "", "the policy `FILE` in JSON or YAML, - for standard input, or postgres://HOST/DATABASE for the rules there")
	fs.StringVar(&c.compare, "compare", "", "the old policy `FILE` to compare the other with: who would be newly limited, and who newly admitted")
	store := fs.String("store", "memory:", "the `URL` of the store: memory:?max_keys=N bounds it; redis://HOST and postgres://HOST/DATABASE are used under names of the replay's own")
	fs.StringVar(&c.format, "format", "text", "the `FORMAT` of the output: text for a report, html for one as a page that needs nothing else, json for a line about each request, or about each that the policies compared disagree about and one that sums up")
	input := fs.String("input", "auto", "the `FORMAT` of the trace: combined (access logs), jsonl, or auto for the one it looks like")
	bound := fs.String("max-newly-limited", "", "exit with 1 where --compare finds more `REQUESTS` than that newly limited: a number, or a share such as 0.1%")
	fs.BoolVar(&c.showKeys, "show-keys", false, "show who was denied, not just how often")
	fs.BoolVar(&c.sort, "sort", false, "sort the requests by time first, over all traces, with 64 MiB of them in memory and the others in a temporary file")
	fs.BoolVar(&c.skipInvalid, "skip-invalid", false, "count lines that cannot be read instead of stopping at the first")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	var inputErr, storeErr, boundErr error
	c.input, inputErr = trace.ParseFormat(*input)
	c.store, storeErr = storeurl.Parse(*store)
	c.bound, boundErr = parseBound(*bound)
	if c.compare != "" && c.policy == "" && len(operands) > 0 { // mete replay --compare OLD NEW TRACE
		c.policy, operands = operands[0], operands[1:]
	}
	c.traces = operands
	switch {
	case inputErr != nil:
		return fs.usageError("--input: %v", inputErr), false
	case c.policy == "" && c.compare == "":
		return fs.usageError("no --policy given"), false
	case c.policy == "":
		return fs.usageError("no policy to compare %s with given: say --compare OLD NEW TRACE", policyName(c.compare)), false
	case len(c.traces) == 0 && c.compare != "":
		return fs.usageError("no trace given to compare %s and %s with; - is standard input", policyName(c.compare), policyName(c.policy)), false
	case len(c.traces) == 0:
		return fs.usageError("no trace given; - is standard input"), false
	case storeErr != nil:
		return fs.usageError("%v", storeErr), false
	case boundErr != nil:
		return fs.usageError("--max-newly-limited: %v", boundErr), false
	case c.bound != nil && c.compare == "":
		return fs.usageError("--max-newly-limited: there is no --compare to count them"), false
	}
	if code, ok := c.checkInputs(fs); !ok {
		return code, false
	}
	if c.store.Memory.MaxKeys == 0 {
		c.store.Memory.MaxKeys = replayMaxKeys
	}
	return exitOK, true
}

// checkInputs checks what is read, and what is written.
func (c *replayCommand) checkInputs(fs *flagSet) (code int, ok bool) {
	inputs := append([]string{c.policy, c.compare}, c.traces...)
	i := slices.Index(inputs, "-")
	switch {
	case i >= 0 && slices.Contains(inputs[i+1:], "-"):
		return fs.usageError("policies and traces cannot both be standard input"), false
	case c.store.File != "":
		return fs.usageError("--store: a replay begins with full buckets and saves none: leave out file=%s", c.store.File), false
	case !slices.Contains([]string{"text", "json", "html"}, c.format):
		return fs.usageError("unknown format %q: it must be text, json or html", c.format), false
	}
	return exitOK, true
}
