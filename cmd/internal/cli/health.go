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
	// healthTimeout bounds the whole call. /readyz itself gives the store one second.
	healthTimeout = 5 * time.Second

	maxHealthBytes = 4 << 10 // limit of the response body
)

const healthAbout = `
Checks whether a server is ready for traffic, and prints the reason if it is
not. It replaces an HTTP client, for example in the HEALTHCHECK of a container.
A server is not ready while it stops, and while a store that its rules require
does not answer. With --live it only checks whether the server runs.

Exit codes:
  0  the server is ready
  1  the server is not ready
  2  wrong usage, or not a mete server
  3  the server does not answer
`

type healthDocument struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it is not
}

func newHealthCommand(std Streams) *cobra.Command {
	var c connection
	var live bool
	var format string
	cmd := &cobra.Command{
		Use: "health [flags]", Short: "Check whether a server is ready for traffic", Long: healthAbout, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := client.New(c.server, nil); err != nil {
				return fail(exitUsage, fmt.Errorf("--server: %w", trimPackage(err)))
			}
			path := "/readyz"
			if live {
				path = "/livez"
			}
			transport := &http.Transport{} // no proxy: check the server itself
			if err := c.loadCertificates(transport); err != nil {
				return fail(exitUsage, err)
			}
			status, reason, err := c.health(cmd.Context(), transport, path)
			answer, text, code := healthDocument{OK: true}, "ok", exitOK
			switch {
			case err != nil:
				return failClient(c.server, &client.Error{Kind: client.KindUnreachable, Err: err})
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
			return exitAfterOutput(err, code)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "check whether the server runs, not whether it is ready")
	addFormat(cmd, &format, "text", "json")
	cmd.Flags().AddFlagSet(c.flags(mainURL()))
	return cmd
}

// health requests a path and returns the reason in the response. It returns an error only if the server does not
// answer.
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
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxHealthBytes)).Decode(&answer) // the status is enough if the body has no reason
	return resp.StatusCode, answer.Reason, nil
}
