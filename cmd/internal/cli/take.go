// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

const takeAbout = `
Asks a running server for tokens and spends them if the request is allowed. The
arguments are the attributes of the request that the policy of the server reads:
header:x-api-key=k1 ip:address=192.0.2.1 method=GET path=/v1/search.

Exit codes:
  0  the request is allowed
  1  the request is denied
  2  wrong usage
  3  the server or its store does not answer
  4  the server rejects the request, for example because of its token

A script can use them:

  mete take path=/nightly && run-the-job

With --max-wait, the server reserves tokens that are not there yet, and the
command ends when they have come. A leaky bucket delays the end in the same way.
If the command is interrupted before, it ends with 2, and the tokens stay spent.

Under a concurrency limit, the command prints a slot. Release it when the work
has ended: see 'mete slots'.

With --key the command takes up to --cost tokens from one bucket, regardless of
the rules, which undoes 'mete reset --key'. It needs the role operate. The exit
code is 1 if the bucket was empty.
`

const peekAbout = `
Asks a running server for the decision of 'mete take' without spending tokens or
waiting. Arguments, output and exit codes are the same as for 'mete take'.

With --key it shows one bucket: its exact level, its limit and the overrides
that apply to it. Under a concurrency limit, it lists the slots that requests
hold. It needs the role read. The exit code is 0 if a request of the
usual cost would pass, and 1 if not.
`

const resetAbout = `
Fills every bucket of a request, so that a client that was denied may continue
at once. It uses the admin address and needs the role operate. For a limit that
is too low, see 'mete override'.

With --key and --reason it fills one bucket, by the key that 'mete top' shows,
and prints the tokens that were missing.

With --rule NAME --all and --reason it fills all buckets of a rule, in the store
and in the memory of all servers. It needs the role configure.
Concurrent takes may stay charged. Other servers follow within a second.
` + changeExits

// changeExits are the exit codes of reset and refund.
const changeExits = `
Exit codes:
  0  done
  1  no limit applies to the request
  2  wrong usage
  3  the server does not answer
  4  the server rejects the request
`

const refundAbout = `
Gives back the cost of a request, or --cost, to every bucket of the request. It
uses the admin address and needs the role operate.
` + changeExits

func newTakeCommand(std Streams) *cobra.Command {
	q := &question{std: std}
	cmd := newQuestionCommand(q, &cobra.Command{Use: "take [flags] [NAME=VALUE ...]", Short: "Spend tokens, if a request is allowed", Long: takeAbout},
		mainURL(), func(ctx context.Context, c *client.Client) error {
			d, err := q.decide(ctx, c.Take)
			if err != nil || d.Wait <= 0 {
				return err
			}
			return await(ctx, std, d.Wait.Duration())
		}, q.takeBucket)
	q.addKey(cmd, "take up to --cost tokens from", true)
	q.addCost(cmd, "spend `TOKENS`, such as 1 or 0.25 (default: the cost in the policy)")
	q.addMaxWait(cmd, "reserve tokens that come within `DURATION`, such as 2s, and wait for them")
	cmd.Flags().StringVar(&q.ID, "id", "", "charge once for all attempts at one request, which have the same `ID`")
	return cmd
}

func newPeekCommand(std Streams) *cobra.Command {
	q := &question{std: std}
	cmd := newQuestionCommand(q, &cobra.Command{Use: "peek [flags] [NAME=VALUE ...]", Short: "Show what take would answer, without spending", Long: peekAbout},
		mainURL(), func(ctx context.Context, c *client.Client) error {
			_, err := q.decide(ctx, c.Peek)
			return err
		}, q.peekBucket)
	q.addKey(cmd, "show", false)
	q.addCost(cmd, "ask about `TOKENS`, such as 1 or 0.25 (default: the cost in the policy)")
	q.addMaxWait(cmd, "ask about a request that accepts a wait of `DURATION`, such as 2s")
	return cmd
}

func newResetCommand(std Streams) *cobra.Command {
	q := &question{std: std}
	cmd := newQuestionCommand(q, &cobra.Command{Use: "reset [flags] NAME=VALUE ...", Short: "Fill the buckets of a request", Long: resetAbout},
		adminURL(), func(ctx context.Context, c *client.Client) error { return q.amend(ctx, c, c.Reset) }, q.resetBucket)
	q.addKey(cmd, "fill", true)
	q.addRule(cmd)
	return cmd
}

func newRefundCommand(std Streams) *cobra.Command {
	q := &question{std: std}
	cmd := newQuestionCommand(q, &cobra.Command{Use: "refund [flags] NAME=VALUE ...", Short: "Give tokens back", Long: refundAbout},
		adminURL(), func(ctx context.Context, c *client.Client) error { return q.amend(ctx, c, c.Refund) }, nil)
	q.addCost(cmd, "give back `TOKENS`, such as 1 or 0.25 (default: the cost in the policy)")
	return cmd
}

// decide sends a question about a request and prints the answer.
func (q *question) decide(ctx context.Context, ask func(context.Context, client.Request) (client.Decision, error)) (client.Decision, error) {
	d, err := ask(ctx, q.Request)
	if err != nil {
		return d, failClient(q.server, err)
	}
	if err := printDecision(q.std.Out, q.format, d); err != nil {
		return d, err
	}
	if len(d.UnknownAttributes) > 0 && q.format == "text" {
		fmt.Fprintf(q.std.Err, "mete: warning: no rule, override or cost reads %s; check the names\n", visible.Text(strings.Join(d.UnknownAttributes, ", ")))
	}
	switch {
	case d.Allowed:
		return d, nil
	case d.Reason == mete.ReasonStoreError: // the bucket was not asked
		return d, exitWith(exitUnreachable)
	}
	return d, exitWith(exitNo)
}

// await returns when the reserved tokens are available or ctx ends.
func await(ctx context.Context, std Streams, wait time.Duration) error {
	if isTerminal(std.Err) {
		fmt.Fprintf(std.Err, "waiting %s\n", prose.Duration(wait))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fail(exitUsage, errors.New("interrupted before the tokens were there; they stay spent"))
	}
}

func (q *question) takeBucket(ctx context.Context, c *client.Client) error {
	if q.Cost == 0 {
		return usageError("the number of tokens is required: --cost TOKENS")
	}
	t, err := c.TakeBucket(ctx, q.key, q.Cost, q.reason)
	if err != nil {
		return failClient(q.server, err)
	}
	err = q.write(t, fmt.Sprintf("took %s of %v\n%s", t.Taken, mete.Tokens(q.Cost), bucketText(&t.After)))
	if t.Taken == 0 {
		err = exitAfterOutput(err, exitNo)
	}
	return err
}

func (q *question) peekBucket(ctx context.Context, c *client.Client) error {
	b, err := c.Bucket(ctx, q.key)
	if err != nil {
		return failClient(q.server, err)
	}
	return exitAfterOutput(q.write(b, bucketText(&b)), bucketCode(&b))
}

func (q *question) resetBucket(ctx context.Context, c *client.Client) error {
	if q.reason == "" {
		return usageError("a reason is required for the audit trail: --reason WHY")
	}
	r, err := c.ResetBucket(ctx, q.key, q.reason)
	if err != nil {
		return failClient(q.server, err)
	}
	text := fmt.Sprintf("full: %s of %s were missing\n", r.Given, r.Before.Capacity)
	if r.Given != 0 {
		text += fmt.Sprintf("undo it with: mete take --key %s --cost %s\n", display.Quote(display.EscapeUnsafe(r.Before.Key)), r.Given)
	}
	return q.write(r, text)
}

// remedy returns what to do about a server that does not answer.
func remedy(server string, cause error) string {
	text := cause.Error()
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](cause)
	switch {
	case distrusted:
		return "name the authority of its certificate with --ca"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "it does not use TLS: write http:// in --server"
	case strings.HasPrefix(server, "https:") && !strings.Contains(text, "refused"):
		return "if it requires a client certificate, set --cert and --tls-key"
	}
	return "start it with 'mete serve', or name another server"
}

// explain adds a remedy to an error of package client.
func explain(server string, err error) error {
	if u, err := url.Parse(server); err == nil {
		server = u.Redacted()
	}
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == client.KindUnreachable:
		cause := e.Err
		if u, ok := errors.AsType[*url.Error](cause); ok {
			cause = u.Err // omit the method and URL of the API call
		}
		return fmt.Errorf("%s does not answer: %w; %s", server, cause, remedy(server, cause))
	case e.Problem != nil && (e.Problem.Status == http.StatusUnauthorized || e.Problem.Status == http.StatusForbidden):
		return fmt.Errorf("%s rejects the request: %s; set --token-file or $%s", server, e.Problem.Detail, tokenVariable)
	case e.Problem != nil && e.Problem.Detail != "" && e.Op != "take" && e.Op != "peek":
		return fmt.Errorf("%s rejects the request: %s", server, e.Problem.Detail)
	case e.Problem != nil && e.Problem.Detail != "":
		return fmt.Errorf("%s could not decide: %s", server, e.Problem.Detail)
	case e.Err != nil:
		return fmt.Errorf("%s could not decide: %w", server, e.Err)
	}
	return err
}
