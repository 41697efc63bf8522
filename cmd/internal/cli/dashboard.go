// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/admintoken"
	"github.com/metehq/mete/internal/visible"
)

const dashboardAbout = `
Opens the dashboard of a server on this machine in a browser, and signs in: the
link works once, within ten minutes, and only on this machine. With --print, the
command prints the link instead. Without a browser it prints the link, too.

The command uses the admin address and an admin token. For a server on another
machine, open its address /dashboard/ and sign in with a token.

The exit code is 0 if the link was opened or printed, 2 on wrong usage, 3 if the
server does not answer, and 4 if it refuses.
`

// maxLinkBytes bounds the answer to a request for a link.
const maxLinkBytes = 4 << 10

// A dashboardLink is the JSON form of a link.
type dashboardLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// newDashboardCommand returns "mete dashboard".
func newDashboardCommand(std Streams) *cobra.Command {
	var to connection
	var format string
	var printOnly bool
	cmd := &cobra.Command{
		Use: "dashboard [flags]", Short: "Open the dashboard of a server, signed in", Long: dashboardAbout, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := to.link(cmd.Context())
			switch {
			case err != nil:
				return err
			case format == "json":
				return writeJSON(std.Out, link)
			case !printOnly && open(cmd.Context(), link.URL) == nil:
				_, err = fmt.Fprintf(std.Out, "opened %s/dashboard/ in a browser\n", strings.TrimSuffix(to.server, "/"))
			default:
				_, err = fmt.Fprintln(std.Out, link.URL)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link, and open no browser")
	addFormat(cmd, &format, "text", "json")
	cmd.Flags().AddFlagSet(to.flags(adminURL()))
	return cmd
}

// link asks the server for a link that signs in once.
func (c *connection) link(ctx context.Context) (dashboardLink, error) {
	if _, err := client.New(c.server, nil); err != nil {
		return dashboardLink{}, fail(exitUsage, fmt.Errorf("--server: %w", plain(err)))
	}
	r, err := c.reach()
	if err != nil {
		return dashboardLink{}, fail(exitUsage, err)
	}
	page, err := url.Parse(strings.TrimSuffix(c.server, "/") + "/dashboard/")
	if err != nil {
		return dashboardLink{}, fail(exitUsage, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, page.String()+"link", nil)
	if err != nil {
		return dashboardLink{}, fail(exitUsage, err)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return dashboardLink{}, failClient(c.server, &client.Error{Op: "dashboard", Kind: client.Unreachable, Err: err})
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLinkBytes))
	if err != nil {
		return dashboardLink{}, failClient(c.server, &client.Error{Op: "dashboard", Kind: client.Unreachable, Err: err})
	}
	if resp.StatusCode != http.StatusOK {
		return dashboardLink{}, c.noLink(resp.StatusCode, text)
	}
	var answer admintoken.SignIn
	if err := json.Unmarshal(text, &answer); err != nil || answer.Token == "" {
		return dashboardLink{}, fail(exitUsage, fmt.Errorf("%s: the answer has no link: is it the admin address of a mete server?", page.Redacted()))
	}
	return dashboardLink{page.String() + "#token=" + url.QueryEscape(answer.Token), answer.ExpiresAt}, nil
}

// noLink is the error of a server that makes no link.
func (c *connection) noLink(status int, text []byte) error {
	var problem api.Problem
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		return fail(exitUsage, fmt.Errorf("%s/dashboard/: status %d: is it the admin address of a mete server?", c.server, status))
	}
	problem.Detail = visible.Text(problem.Detail)
	return failClient(c.server, &client.Error{Op: "dashboard", Kind: client.Refused, Status: status, Problem: &problem})
}

// open opens a URL in the browser of the user.
func open(ctx context.Context, url string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", url).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url).Run()
	}
	if _, err := exec.LookPath("xdg-open"); err != nil {
		return errors.New("there is no xdg-open")
	}
	return exec.CommandContext(ctx, "xdg-open", url).Run()
}
