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
Opens the dashboard of a server on this machine in a browser, and signs in. The
link works once, within ten minutes, and only on this machine. With --print, and
without a browser, the command prints the link.

While a browser starts, other users of the machine can see the link in the list
of processes. On a shared machine, use --print.

The command uses the admin address and an admin token. For a server on another
machine, open its address /dashboard/ and sign in with a token.

Exit codes:
  0  the link was opened or printed
  2  wrong usage
  3  the server does not answer
  4  the server rejects the request
`

const maxLinkBytes = 4 << 10

type dashboardLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

func newDashboardCommand(std Streams) *cobra.Command {
	var to connection
	var format string
	var printOnly bool
	cmd := &cobra.Command{
		Use: "dashboard [flags]", Short: "Open the dashboard of a server, signed in", Long: dashboardAbout, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			link, err := to.requestLink(cmd.Context())
			switch {
			case err != nil:
				return err
			case format == "json":
				return writeJSON(std.Out, link)
			case !printOnly && openBrowser(cmd.Context(), link.URL) == nil:
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

func (c *connection) requestLink(ctx context.Context) (dashboardLink, error) {
	if _, err := client.New(c.server, nil); err != nil {
		return dashboardLink{}, fail(exitUsage, fmt.Errorf("--server: %w", trimPackage(err)))
	}
	r, err := c.endpoint()
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
		return dashboardLink{}, failClient(c.server, &client.Error{Op: "dashboard", Kind: client.KindUnreachable, Err: err})
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLinkBytes))
	if err != nil {
		return dashboardLink{}, failClient(c.server, &client.Error{Op: "dashboard", Kind: client.KindUnreachable, Err: err})
	}
	if resp.StatusCode != http.StatusOK {
		return dashboardLink{}, c.linkError(resp.StatusCode, text)
	}
	var answer admintoken.SignIn
	if err := json.Unmarshal(text, &answer); err != nil || answer.Token == "" {
		return dashboardLink{}, fail(exitUsage, fmt.Errorf("%s: the response has no link: is it the admin address of a mete server?", page.Redacted()))
	}
	return dashboardLink{page.String() + "#token=" + url.QueryEscape(answer.Token), answer.ExpiresAt}, nil
}

func (c *connection) linkError(status int, text []byte) error {
	var problem api.Problem
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		return fail(exitUsage, fmt.Errorf("%s/dashboard/: status %d: is it the admin address of a mete server?", c.server, status))
	}
	problem.Detail = visible.Text(problem.Detail)
	return failClient(c.server, &client.Error{Op: "dashboard", Kind: client.KindRefused, Status: status, Problem: &problem})
}

func openBrowser(ctx context.Context, url string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", url).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url).Run()
	}
	if _, err := exec.LookPath("xdg-open"); err != nil {
		return errors.New("xdg-open is not installed")
	}
	return exec.CommandContext(ctx, "xdg-open", url).Run()
}
