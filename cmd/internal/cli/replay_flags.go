// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/prose"
)

func newReplayCommand(std Streams) *cobra.Command {
	c := &replayCommand{std: std}
	var input, store, bound, next string
	cmd := &cobra.Command{
		Use: "replay [flags] [POLICY] TRACE ...", Short: "Run recorded traffic through a policy", Long: replayAbout,
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if c.traces, err = c.policies(next, args); err != nil {
				return err
			}
			if c.input, err = trace.ParseFormat(input); err != nil {
				return usageError("--input: %w", err)
			}
			if c.store, err = storeurl.Parse(store); err != nil {
				return usageError("%w", err)
			}
			if c.bound, err = parseBound(bound); err != nil {
				return usageError("--max-newly-limited: %w", err)
			}
			if err := c.check(); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
	}
	addPolicy(cmd, &c.policy, "the policy `FILE` in JSON or YAML, - for standard input, or postgres://HOST/DATABASE for the rules there")
	fs := cmd.Flags()
	fs.StringVar(&c.old, "old", "", "compare two policies: the old policy `FILE`")
	fs.StringVar(&next, "new", "", "compare two policies: the new policy `FILE`")
	fs.StringVar(&store, "store", "memory:", "the `URL` of the store: memory:?max_keys=N, redis://HOST or postgres://HOST/DATABASE")
	addFormat(cmd, &c.format, "text", "json", "html")
	fs.StringVar(&input, "input", "auto", "the `FORMAT` of the trace: combined (access logs), jsonl or auto")
	completeWords(cmd, "input", "auto", "combined", "jsonl")
	fs.StringVar(&bound, "max-newly-limited", "", "exit with 1 if --new limits more `REQUESTS` that --old admits: a number, or a share such as 0.1%")
	fs.BoolVar(&c.showKeys, "show-keys", false, "show the denied keys instead of numbers")
	fs.BoolVar(&c.sort, "sort", false, "sort the requests of all traces by time first, in 64 MiB of memory and a temporary file")
	fs.BoolVar(&c.skipInvalid, "skip-invalid", false, "count lines that cannot be read instead of stopping at the first")
	return cmd
}

// policies takes the policies from the flags or the arguments, and returns the traces.
func (c *replayCommand) policies(next string, args []string) (traces []string, err error) {
	switch {
	case c.old == "" && next == "":
		if traces = policyArgument(&c.policy, args); c.policy == "" {
			return nil, usageError("no policy given: a file, - for standard input, or a database such as postgres://HOST/DATABASE")
		}
		return traces, nil
	case c.old == "" || next == "":
		return nil, usageError("--old and --new are required together")
	case c.policy != "":
		return nil, usageError("--policy does not go with --old and --new")
	}
	c.policy = next
	return args, nil
}

// check checks combinations of policies, traces and flags.
func (c *replayCommand) check() error {
	inputs := append([]string{c.policy, c.old}, c.traces...)
	i := slices.Index(inputs, "-")
	switch {
	case len(c.traces) == 0 && c.old != "":
		return usageError("no trace given to compare %s and %s with; - is standard input", policyName(c.old), policyName(c.policy))
	case len(c.traces) == 0:
		return usageError("no trace given for the policy %s; - is standard input", policyName(c.policy))
	case c.bound != nil && c.old == "":
		return usageError("--max-newly-limited needs --old and --new")
	case i >= 0 && slices.Contains(inputs[i+1:], "-"):
		return usageError("policies and traces cannot both be standard input")
	case c.store.File != "":
		return usageError("--store: a replay starts with full buckets and does not save them: remove file=%s", c.store.File)
	}
	if c.store.Memory.MaxKeys == 0 {
		c.store.Memory.MaxKeys = replayMaxKeys
	}
	return nil
}

// A bound is the value of --max-newly-limited: a number of requests or a share of all requests. A nil bound allows
// any number.
type bound struct {
	text  string
	count int64
	share float64 // between 0 and 1; negative if count applies
}

// parseBound parses a bound. It returns nil for an empty text.
func parseBound(text string) (*bound, error) {
	if text == "" {
		return nil, nil
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || math.IsNaN(p) || p < 0 || p > 100 {
			return nil, fmt.Errorf("%q: a share must be between 0%% and 100%%", text)
		}
		return &bound{text: text, share: p / 100}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q: must be a whole number of requests, or a share such as 0.1%%", text)
	}
	return &bound{text: text, count: n, share: -1}, nil
}

// An exceedsBound is the error of a replay that newly limits too many requests.
type exceedsBound struct{ error }

// check returns an exceedsBound if n of the requests exceed the bound.
func (b *bound) check(n, requests int64) error {
	if b == nil {
		return nil
	}
	most := float64(b.count)
	if b.share >= 0 {
		most = b.share * float64(requests)
	}
	if float64(n) <= most {
		return nil
	}
	return exceedsBound{errors.New(prose.Count(n, "request is", "requests are") + " newly limited, more than --max-newly-limited " + b.text + " lets pass")}
}
