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

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/visible"
)

const (
	// healthTimeout is for the whole answer. /readyz itself gives the store a second.
	healthTimeout = 5 * time.Second

	maxHealthBytes = 4 << 10 // of an answer
)

// health is "mete health".
func health(ctx context.Context, std Streams, args []string) int {
	fs := newFlags(std, "health")
	var c connection
	c.flags(fs, "`URL` of the server, its main address or its admin one", "http://"+config.Default().Listen)
	live := fs.Bool("live", false, "ask whether it runs, and not whether it should be sent traffic")
	operands, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case len(operands) > 0:
		return fs.usageError("unexpected argument %q", operands[0])
	}
	if _, err := client.New(c.server, nil); err != nil {
		return fail(std, exitUsage, "health", fmt.Errorf("--server: %w", plain(err)))
	}
	path := "/readyz"
	if *live {
		path = "/livez"
	}
	status, reason, err := c.health(ctx, path)
	switch {
	case err != nil:
		return fail(std, exitUnreachable, "health", err)
	case status == http.StatusOK:
		fmt.Fprintln(std.Out, "ok")
		return exitOK
	case status == http.StatusServiceUnavailable:
		fmt.Fprintln(std.Out, visible.Lines(reason))
		return exitNo
	}
	return fail(std, exitUsage, "health", fmt.Errorf("%s%s: status %d: is it a mete server?", c.server, path, status))
}

// health asks for a path, and returns what the answer gives as the reason. An
// error means that there is no answer.
func (c *connection) health(ctx context.Context, path string) (status int, reason string, err error) {
	transport := &http.Transport{} // no proxy: it is this server that is asked
	if err := c.trust(transport); err != nil {
		return 0, "", err
	}
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
