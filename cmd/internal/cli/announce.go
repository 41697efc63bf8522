// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/prose"
)

// announce prints the server's addresses and example commands, or logs one record if the log format is JSON. It
// writes everything in one call, so that readers never see half of it.
func announce(out io.Writer, log *slog.Logger, c config.Config, s *server.Server) {
	main, admin := schemeText(c.TLS)+s.Addr().String(), schemeText(c.AdminTLS)+s.AdminAddr().String()
	rules := len(s.Policy().Rules())
	if c.LogFormat == "json" {
		attrs := []any{"url", main, "admin_url", admin, "policy", c.PolicyName(), "rules", rules, "upstream", upstreamText(c), "token_file", s.TokenFile()}
		if p := s.Policy().Prices(); p != nil {
			attrs = append(attrs, "prices", p.String())
		}
		log.Info("listening", attrs...)
		return
	}
	policy := "built-in example"
	if c.Policy != "" {
		policy = c.PolicyName()
	}
	if p := s.Policy().Prices(); p != nil {
		policy += ", prices " + p.String()
	}
	w := new(bytes.Buffer)
	defer func() { out.Write(w.Bytes()) }()
	fmt.Fprintf(w, "mete is listening on %s\n\n", main)
	if c.Upstream != nil {
		fmt.Fprintf(w, "  upstream  %s\n", c.Upstream)
	}
	for _, u := range c.Upstreams {
		urls := make([]string, len(u.URLs))
		for i, server := range u.URLs {
			urls[i] = server.String()
		}
		fmt.Fprintf(w, "  upstream  %s: %s\n", u.Name, strings.Join(urls, ", "))
	}
	fmt.Fprintf(w, "  policy    %s, %s\n  store     %s\n  dashboard %s\n  admin     %s\n", policy, prose.Count(rules, "rule"), storeName(c.Store), dashboardText(out, admin, s), admin)
	if file := s.TokenFile(); file != "" {
		fmt.Fprintf(w, "  token     %s\n", file)
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "Send a request, then more than the policy allows:\n\n")
	for _, command := range s.Commands(c) {
		fmt.Fprintf(w, "  %s\n", command)
	}
	fmt.Fprintf(w, "\nShow denied clients, and the reasons:\n\n  %s top --server %s\n", programName(), admin)
	if !c.IsGateway() {
		fmt.Fprintf(w, "\nStop it with Ctrl-C, and put it in front of a service:\n\n  %s serve --upstream http://127.0.0.1:3000\n", programName())
	}
	fmt.Fprintln(w)
}

func upstreamText(c config.Config) string {
	if c.Upstream == nil {
		return ""
	}
	return c.Upstream.String()
}

// dashboardText returns the address of the dashboard. On a terminal, the address is a link that signs in once.
// Other outputs may be logs, which must not contain a token.
func dashboardText(out io.Writer, admin string, s *server.Server) string {
	if isTerminal(out) {
		if link := s.DashboardLink(); link != "" {
			return link + "\n            (signs in once, within 10 minutes; 'mete dashboard' opens another one)"
		}
	}
	return admin + "/dashboard/ ('mete dashboard' opens it)"
}

func schemeText(t config.TLS) string {
	if t.On() {
		return "https://"
	}
	return "http://"
}

// programName returns the command that starts this program again, as the user typed it if possible.
func programName() string {
	name := os.Args[0]
	if strings.Contains(name, "go-build") { // "go run" deletes the program afterwards
		return "go run ./cmd/mete"
	}
	if filepath.Base(name) != "mete" || strings.HasPrefix(name, os.TempDir()) || strings.ContainsAny(name, " '\"$") {
		return "mete"
	}
	return name
}

// storeName returns the store's URL without its password, and how the store saves its buckets.
func storeName(store *storeurl.URL) string {
	switch {
	case store.File == "":
		return store.String()
	case store.Every == 0:
		return store.String() + ", saved at the end"
	}
	return store.String() + ", saved every " + prose.Duration(store.Every) + " and at the end"
}
