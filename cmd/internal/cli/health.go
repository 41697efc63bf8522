// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/visible"
)

const (
	// healthTimeout is for the whole answer. /readyz itself gives the store a second.
	healthTimeout = 5 * time.Second

	maxHealthBytes = 4 << 10 // of an answer
)

const healthAbout = `
Asks a server whether it is ready for traffic, and prints the reason if it is
not. It replaces an HTTP client, for example in the HEALTHCHECK of a container.
A server is not ready while it stops, and while a store that its rules require
does not answer. With --live it asks only whether the server runs.

Exit codes:
  0  the server is ready
  1  the server is not ready
  2  wrong usage, or not a mete server
  3  the server does not answer
`

// A healthDocument is the JSON form of the answer.
type healthDocument struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not
}

// newHealthCommand returns "mete health".
func newHealthCommand(std Streams) *cobra.Command {
	var c connection
	var live bool
	var format string
	cmd := &cobra.Command{
		Use: "health [flags]", Short: "Check whether a server is ready for traffic", Long: healthAbout, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := client.New(c.server, nil); err != nil {
				return fail(exitUsage, fmt.Errorf("--server: %w", plain(err)))
			}
			path := "/readyz"
			if live {
				path = "/livez"
			}
			transport := &http.Transport{} // no proxy: it is this server that is asked
			if err := c.trust(transport); err != nil {
				return fail(exitUsage, err)
			}
			status, reason, err := c.health(cmd.Context(), transport, path)
			answer, text, code := healthDocument{OK: true}, "ok", exitOK
			switch {
			case err != nil:
				return failClient(c.server, &client.Error{Kind: client.Unreachable, Err: err})
			case status == http.StatusServiceUnavailable:
				answer, text, code = healthDocument{Reason: reason}, visible.Lines(reason), exitNo
			case status != http.StatusOK:
				return fail(exitUsage, fmt.Errorf("%s%s: status %d: is it a mete server?", c.server, path, status))
			}
			if format == "json" {
				err = writeJSON(std.Out, answer)
			} else {
				_, err = fmt.Fprintln(std.Out, text)
			}
			return answered(err, code)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask whether the server runs, not whether it is ready")
	addFormat(cmd, &format, "text", "json")
	cmd.Flags().AddFlagSet(c.flags(mainURL()))
	return cmd
}

// health asks for a path, and returns what the answer gives as the reason. An
// error means that there is no answer.
func (c *connection) health(ctx context.Context, transport http.RoundTripper, path string) (status int, reason string, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.server, "/")+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	answer := struct {
		Reason string `json:"reason"`
	}{"not available"}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxHealthBytes)).Decode(&answer) // a reason is good to have, and the status says it all
	return resp.StatusCode, answer.Reason, nil
}
