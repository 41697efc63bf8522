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

	"github.com/metehq/mete"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

// take is "mete take".
func take(ctx context.Context, std Streams, args []string) int {
	d, code := ask(ctx, std, "take", args, (*client.Client).Take)
	if code != exitOK || d.Wait <= 0 {
		return code
	}
	if err := await(ctx, std, d.Wait.Duration()); err != nil {
		return fail(std, exitUsage, "take", err)
	}
	return exitOK
}

// await returns once the tokens that were reserved are there, or ctx ends.
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
		return errors.New("interrupted before the tokens were there; they stay spent")
	}
}

// peek is "mete peek".
func peek(ctx context.Context, std Streams, args []string) int {
	_, code := ask(ctx, std, "peek", args, (*client.Client).Peek)
	return code
}

// ask puts the question that args describe to a server and prints the answer. The
// code is what the answer comes to.
func ask(ctx context.Context, std Streams, name string, args []string,
	put func(*client.Client, context.Context, client.Request) (client.Decision, error)) (d client.Decision, code int) {

	q, code, ok := parseQuestion(std, name, args)
	if !ok {
		return d, code
	}
	if q.key != "" {
		return d, ofOneBucket(ctx, std, name, q)
	}
	c, err := q.client()
	if err != nil {
		return d, fail(std, exitUsage, name, err)
	}
	d, err = put(c, ctx, q.Request)
	if err != nil {
		return d, fail(std, exitCode(err), name, explain(q.server, err))
	}
	if err := printDecision(std.Out, q.format, d); err != nil {
		return d, fail(std, exitUsage, name, err)
	}
	if len(d.UnknownAttributes) > 0 && q.format == "text" {
		fmt.Fprintf(std.Err, "mete %s: warning: no rule, override or cost reads %s; check the names\n", name, visible.Text(strings.Join(d.UnknownAttributes, ", ")))
	}
	switch {
	case d.Allowed:
		return d, exitOK
	case d.Reason == mete.ReasonStoreError: // nobody has asked the bucket
		return d, exitUnreachable
	}
	return d, exitNo
}

// exitCode tells a server that does not answer from one that does not decide.
func exitCode(err error) int {
	if e, ok := errors.AsType[*client.Error](err); ok && e.Kind == client.Unreachable {
		return exitUnreachable
	}
	return exitUsage
}

// advice is what to do about a server that does not answer.
func advice(server string, cause error) string {
	text := cause.Error()
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](cause)
	switch {
	case distrusted:
		return "name the authority of its certificate with --ca"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "it speaks no TLS: say http:// in --server"
	case strings.HasPrefix(server, "https:") && !strings.Contains(text, "refused"):
		return "where it wants a certificate of yours, say --cert and --key-file"
	}
	return "start it with 'mete serve', or name another with --server"
}

// explain says what to do about a client's error.
func explain(server string, err error) error {
	if u, err := url.Parse(server); err == nil {
		server = u.Redacted()
	}
	e, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == client.Unreachable:
		cause := e.Err
		if u, ok := errors.AsType[*url.Error](cause); ok {
			cause = u.Err // without the method and the URL, which is the API's
		}
		return fmt.Errorf("%s does not answer: %w; %s", server, cause, advice(server, cause))
	case e.Problem != nil && (e.Problem.Status == http.StatusUnauthorized || e.Problem.Status == http.StatusForbidden):
		return fmt.Errorf("%s refuses: %s; here, that is --token-file or $%s", server, e.Problem.Detail, tokenVariable)
	case e.Problem != nil && e.Problem.Detail != "" && e.Op != "take" && e.Op != "peek":
		return fmt.Errorf("%s refuses: %s", server, e.Problem.Detail)
	case e.Problem != nil && e.Problem.Detail != "":
		return fmt.Errorf("%s could not decide: %s", server, e.Problem.Detail)
	case e.Err != nil:
		return fmt.Errorf("%s could not decide: %w", server, e.Err)
	}
	return err
}
