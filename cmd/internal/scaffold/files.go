// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/policy"
)

type file struct {
	name, text string
	secret     bool // readable only by the owner
}

func (p *plan) files() []file {
	return []file{
		{name: PolicyFile, text: p.policy()},
		{name: SettingsFile, text: p.settings(), secret: storeurl.Shown(p.store) != p.store},
	}
}

// mostTimes bounds the requests in a test step. A test spends a larger burst with one request that has a cost.
const mostTimes = 1000

// quoteYAML returns text as a YAML string.
func quoteYAML(text string) string {
	b, err := json.Marshal(text)
	if err != nil { // a string always has a JSON form
		return `""`
	}
	return string(b)
}

// clients returns two example clients.
func (p *plan) clients() (one, other string) {
	switch {
	case p.by.Source == policy.SourceIP:
		return "192.0.2.1", "198.51.100.2"
	case p.by.Source == policy.SourceJWT:
		return "kim", "alex"
	}
	return "client-1", "client-2"
}

// policy returns the contents of the policy file.
func (p *plan) policy() string {
	var b strings.Builder
	one, other := p.clients()
	by, byAddress := quoteYAML(p.by.Spelling()), p.by.Source == policy.SourceIP
	fmt.Fprintf(&b, "# The limits of mete. 'mete check' reads them and runs the tests below.\n")
	fmt.Fprintf(&b, "# A running server reloads this file when it changes. doc/policy.md describes it.\n\n")
	fmt.Fprintf(&b, "rules:\n")
	fmt.Fprintf(&b, "  # Each client may make %s at once, and then %s per %s.\n", requests(p.burst), p.rate.amount, p.rate.per)
	fmt.Fprintf(&b, "  - name: per-client\n")
	fmt.Fprintf(&b, "    limit_keys: [%s]   # requests with equal values share one limit\n", by)
	fmt.Fprintf(&b, "    rate: %s\n    burst: %d\n", p.rate.text(), p.burst)
	if !byAddress {
		fmt.Fprintf(&b, "\n# Requests without %s are limited by address, so that omitting it has no advantage.\n", p.by)
		fmt.Fprintf(&b, "fallback_limit:\n  name: anonymous\n  limit_keys: [\"ip:address\"]\n  rate: %s\n  burst: %d\n", p.rate.text(), p.burst)
	}
	fmt.Fprintf(&b, "\n# Tests: requests in virtual time, with the expected decisions.\n")
	fmt.Fprintf(&b, "tests:\n")
	fmt.Fprintf(&b, "  - name: a client gets %s at once, then waits\n", requests(p.burst))
	fmt.Fprintf(&b, "    request: { %s: %s }\n    steps:\n", quoteYAML(p.by.String()), quoteYAML(one))
	fmt.Fprintf(&b, "      - { %s, expect: allowed }\n", p.spend())
	fmt.Fprintf(&b, "      - { expect: { denied: per-client } }\n")
	fmt.Fprintf(&b, "      - { with: { %s: %s }, expect: allowed }   # another client\n", quoteYAML(p.by.String()), quoteYAML(other))
	fmt.Fprintf(&b, "      - { after: %s, expect: allowed }\n", p.refillTime())
	if !byAddress {
		fmt.Fprintf(&b, "\n  - name: requests without %s share the limit of their address\n", p.by)
		fmt.Fprintf(&b, "    request: { \"ip:address\": 192.0.2.1 }\n    steps:\n")
		fmt.Fprintf(&b, "      - { %s, expect: allowed }\n", p.spend())
		fmt.Fprintf(&b, "      - { expect: { denied: anonymous } }\n")
	}
	return b.String()
}

func requests(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// spend returns the part of a test step that spends the burst.
func (p *plan) spend() string {
	if p.burst > mostTimes {
		return fmt.Sprintf("cost: %d", p.burst)
	}
	return fmt.Sprintf("times: %d", p.burst)
}

// refillTime returns a time after which the bucket has a token again.
func (p *plan) refillTime() string {
	if p.rate.Tokens.Whole() >= 1 {
		return p.rate.per
	}
	return p.limit().TimeFor(bucket.Token).String()
}

func (p *plan) limit() bucket.Limit {
	l, err := bucket.NewLimit(bucket.Tokens(p.burst)*bucket.Token, p.rate.Rate)
	if err != nil { // parseBurst has compiled it
		return bucket.Limit{}
	}
	return l
}

// settings returns the contents of the settings file.
func (p *plan) settings() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The settings of mete: 'mete serve' reads them.\n")
	fmt.Fprintf(&b, "# 'mete help config' prints every setting with its default.\n\n")
	fmt.Fprintf(&b, "policy: %s            # beside this file\n", PolicyFile)
	fmt.Fprintf(&b, "listen: 127.0.0.1:8080         # %s\n", p.listens())
	fmt.Fprintf(&b, "admin_listen: 127.0.0.1:8081   # dashboard, metrics and administrators\n")
	switch {
	case p.upstream != "":
		fmt.Fprintf(&b, "\n# The server forwards allowed requests to this service.\nupstream: %s\n", setting(p.upstream))
	case p.gateway != "":
		fmt.Fprintf(&b, "\n# This gateway asks mete about each request. See doc/gateways.md.\ndecision_profile: %s\n", p.gateway)
		fmt.Fprintf(&b, "trusted_proxies: [127.0.0.1]   # the addresses of the gateway\n")
	}
	if p.keys != "" {
		fmt.Fprintf(&b, "\n# Bearer tokens are verified with these public keys.\njwt:\n  keys: %s\n", setting(p.keys))
	}
	fmt.Fprintf(&b, "\n# %s\nstore: %s\n", p.storeWords(), setting(p.store))
	return b.String()
}

// setting returns a value for the settings file. It escapes ${, which begins a variable.
func setting(text string) string { return quoteYAML(strings.ReplaceAll(text, "${", "$${")) }

func (p *plan) listens() string {
	switch {
	case p.upstream != "":
		return "clients connect here"
	case p.gateway != "":
		return "the gateway asks here"
	}
	return "programs ask here"
}

func (p *plan) storeWords() string {
	s, err := storeurl.Parse(p.store)
	if err != nil || !s.Remote() {
		return "The counters are in memory. For several servers, use Redis or PostgreSQL."
	}
	return fmt.Sprintf("The counters are in %s. All servers with this URL share them.", s.Scheme.Name())
}

// nextSteps returns the message after the files are written.
func (p *plan) nextSteps(dir string) string {
	policyPath, settingsPath := filepath.Join(dir, PolicyFile), filepath.Join(dir, SettingsFile)
	check, serve := "mete check", "mete serve" // which find the files in the current directory
	if filepath.Dir(policyPath) != "." {
		check, serve = check+" "+policyPath, serve+" --config "+settingsPath
	}
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %s and %s\n\n", policyPath, settingsPath)
	fmt.Fprintf(&b, "Check the policy, then start the limiter:\n\n")
	fmt.Fprintf(&b, "  %s\n  %s\n\n", check, serve)
	one, _ := p.clients()
	switch {
	case p.gateway != "":
		fmt.Fprintf(&b, "Then configure %s to ask mete. The repository has an example in examples/gateways/%s.\n", p.gateway, p.gateway)
		fmt.Fprintf(&b, "'mete explain --policy %s %s=%s' shows a decision without the gateway.\n", policyPath, p.by, one)
	case p.upstream != "":
		fmt.Fprintf(&b, "In another terminal, send more requests than the limit admits:\n\n")
		fmt.Fprintf(&b, "  for i in $(seq %d); do curl -so /dev/null -w '%%{http_code}\\n' %shttp://127.0.0.1:8080/; done | sort | uniq -c\n", p.excess(), p.curlFields(one))
	default:
		body := fmt.Sprintf(`{"attributes": {%s: %s}}`, quoteYAML(p.by.String()), quoteYAML(one))
		fmt.Fprintf(&b, "In another terminal, send more requests than the limit admits:\n\n")
		fmt.Fprintf(&b, "  for i in $(seq %d); do curl -so /dev/null -w '%%{http_code}\\n' --json '%s' 'http://127.0.0.1:8080/v1/take?status=429'; done | sort | uniq -c\n", p.excess(), body)
	}
	return b.String()
}

// excess returns a number of requests that exceeds the limit.
func (p *plan) excess() int64 { return p.burst + 5 }

// curlFields returns the curl options that set the attribute of a client.
func (p *plan) curlFields(client string) string {
	switch p.by.Source {
	case policy.SourceHeader:
		return fmt.Sprintf("-H '%s: %s' ", p.by.Name, client)
	case policy.SourceCookie:
		return fmt.Sprintf("-b '%s=%s' ", p.by.Name, client)
	}
	return ""
}
