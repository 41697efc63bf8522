// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/cmd/internal/prose"
)

// A byKey is how take, peek and reset are asked about one bucket.
type byKey struct {
	key, reason string
}

// define defines the flags of the named command.
func (k *byKey) define(fs *flagSet, name string) {
	does := map[string]string{"take": "take up to --cost tokens from", "peek": "look at", "reset": "make full"}[name]
	fs.StringVar(&k.key, "key", "", does+" the one bucket with that `KEY`, as explain and top show it; asked of the admin address")
	if name != "peek" {
		fs.StringVar(&k.reason, "reason", "", "with --key: `WHY`, for the log")
	}
}

// check reports what does not go with --key: all that describes a request. Unless it is
// said where to ask, that is where buckets are.
func (k *byKey) check(fs *flagSet, server *string, operands []string, cost mete.Tokens) (code int, ok bool) {
	if k.key == "" {
		if k.reason != "" {
			return fs.usageError("--reason is for --key"), false
		}
		return exitOK, true
	}
	if len(operands) > 0 {
		return fs.usageError("--key is in place of %q: it says which bucket, and no request is asked about", operands[0]), false
	}
	allowed := strings.Fields(connectFlags + " key format reason")
	if fs.Name() == "take" {
		allowed = append(allowed, "cost")
	}
	wrong, elsewhere := "", false
	fs.Visit(func(f *flag.Flag) {
		elsewhere = elsewhere || f.Name == "server"
		if !slices.Contains(allowed, f.Name) {
			wrong = f.Name
		}
	})
	if !elsewhere {
		*server = "http://" + config.Default().AdminListen
	}
	switch {
	case wrong != "":
		return fs.usageError("--%s does not go with --key", wrong), false
	case fs.Name() == "take" && cost == 0:
		return fs.usageError("say how many tokens, with --cost"), false
	case fs.Name() == "reset" && k.reason == "":
		return fs.usageError("say why, with --reason: people will ask later"), false
	}
	return exitOK, true
}

// ofOneBucket answers a question about one bucket.
func ofOneBucket(ctx context.Context, std Streams, name string, q question) int {
	c, err := q.client()
	if err != nil {
		return fail(std, exitUsage, name, err)
	}
	answer, text, code := any(nil), "", exitOK
	switch name {
	case "peek":
		var b api.Bucket
		b, err = c.Bucket(ctx, q.key)
		answer, text, code = b, bucketText(&b), bucketCode(&b)
	case "take":
		var t api.BucketTake
		t, err = c.TakeBucket(ctx, q.key, q.Cost, q.reason)
		if answer, text = t, fmt.Sprintf("took %s of %v\n%s", t.Taken, mete.Tokens(q.Cost), bucketText(&t.After)); t.Taken == 0 {
			code = exitNo
		}
	default:
		var r api.BucketReset
		r, err = c.ResetBucket(ctx, q.key, q.reason)
		answer, text = r, fmt.Sprintf("full: it missed %s of %s\n", r.Given, r.Before.Capacity)
		if r.Given != 0 {
			text += fmt.Sprintf("undo it with: mete take --key %s --cost %s\n", display.Quote(display.Inert(r.Before.Key)), r.Given)
		}
	}
	if err != nil {
		return fail(std, exitCode(err), name, explain(q.server, err))
	}
	if err := printBucket(std.Out, q.format, answer, text); err != nil {
		return fail(std, exitUsage, name, err)
	}
	return code
}

func printBucket(w io.Writer, format string, answer any, text string) error {
	if format == "json" {
		return json.NewEncoder(w).Encode(answer)
	}
	_, err := io.WriteString(w, text)
	return err
}

// bucketCode is whether a request that says nothing would pass.
func bucketCode(b *api.Bucket) int {
	if b.AllowedBy == nil && !b.Shadow && (b.BlockedBy != nil || b.RetryAfter != 0) {
		return exitNo
	}
	return exitOK
}

// bucketText is a bucket for people.
func bucketText(b *api.Bucket) string {
	var t strings.Builder
	fmt.Fprintf(&t, "%s\n  %s of %s left", display.Inert(b.Key), b.Remaining, b.Capacity)
	switch full := b.FullAfter.Duration(); {
	case full == 0:
		t.WriteString(", full")
	case full != bucket.Never:
		t.WriteString(", full again in " + prose.Duration(full))
	}
	if b.Owed != 0 {
		fmt.Fprintf(&t, "; %s owed", b.Owed)
	}
	switch wait := b.RetryAfter.Duration(); wait {
	case 0:
	case bucket.Never:
		fmt.Fprintf(&t, "; a request of %s never passes", b.Cost)
	default:
		fmt.Fprintf(&t, "; a request of %s passes in %s", b.Cost, prose.Duration(wait))
	}
	fmt.Fprintf(&t, "\n  limit %s, %s: %s", b.Limit, b.Algorithm, b.Words)
	if b.Mode != "enforce" {
		t.WriteString("; mode " + b.Mode)
	}
	if b.Shadow {
		t.WriteString(", for this key in shadow")
	}
	t.WriteByte('\n')
	if b.Override != nil {
		fmt.Fprintf(&t, "  another limit by override %s: %s\n", b.Override.ID, display.Inert(b.Override.Reason))
	}
	if b.BlockedBy != nil {
		fmt.Fprintf(&t, "  blocked by override %s: %s\n", b.BlockedBy.ID, display.Inert(b.BlockedBy.Reason))
	}
	if b.AllowedBy != nil {
		fmt.Fprintf(&t, "  allowed by override %s: %s\n", b.AllowedBy.ID, display.Inert(b.AllowedBy.Reason))
	}
	return t.String()
}
