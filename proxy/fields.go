// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// A fieldAction is how the proxy treats a request header field.
type fieldAction uint8

const (
	forwarded   fieldAction = iota
	removed                 // from every client
	written                 // removed, then written by the proxy
	fromTrusted             // passes from a trusted proxy, removed otherwise
)

func (f fieldAction) String() string {
	return [...]string{"passes", "removed", "replaced", "removed unless a trusted proxy sent it"}[f]
}

// A fieldRow is a group of fields with one action. It is a row of the table in doc/proxy.md.
type fieldRow struct {
	Names  []string // a final "*" matches any suffix
	Label  string   // replaces Names if no list can describe the row
	Action fieldAction
	Why    string
}

// fieldRows lists all request fields that the proxy does not simply forward.
var fieldRows = []fieldRow{
	{Names: []string{"Connection", "Upgrade", "TE", "Trailer", "Transfer-Encoding", "Content-Length"}, Action: written,
		Why: "they describe one connection or one body. `Upgrade` passes with a protocol of `upgrades`, `TE` with `trailers`"},
	{Label: "names that `Connection` lists", Action: removed, Why: "they are for one hop"},
	{Names: []string{"Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "HTTP2-Settings"}, Action: removed,
		Why: "they are for one hop"},
	{Names: []string{"Proxy"}, Action: removed, Why: "CGI programs take it for their own proxy setting (CVE-2016-5385)"},
	{Label: "names with `_`, or any character except letters, digits and `-`", Action: removed,
		Why: "CGI, WSGI, Rack and PHP read `X_Api_Key` as `X-Api-Key`. The setting `underscores_in_headers` passes or refuses them"},
	{Names: []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}, Action: written,
		Why: "client, host and scheme. From a trusted proxy, `-Host` and `-Proto` stay, and the address comes after the hops in `forwarded_header`"},
	{Names: []string{"X-Forwarded*"}, Action: fromTrusted,
		Why: "`-Port`, `-Prefix`, `-Server`, `-Ssl`, `-Scheme`, `-Uri`, `-User` and the like: Spring, Rack, ASP.NET and Traefik trust them"},
	{Label: "the field that `forwarded_header` names", Action: fromTrusted, Why: "the upstream trusts it as mete does"},
	{Names: []string{
		"X-Real-IP", "True-Client-IP", "X-True-Client-IP", "Akamai-Client-IP", "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Remote-IP", "X-Remote-Addr", "X-Originating-IP",
		"X-ProxyUser-IP", "Forwarded-For", "Proxy-Client-IP", "WL-Proxy-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4",
		"Fastly-Client-IP", "Fly-Client-IP", "DO-Connecting-IP", "Incap-Client-IP", "Ali-CDN-Real-IP", "CDN-Src-IP", "X-Sucuri-ClientIP",
		"X-Azure-ClientIP", "X-Azure-SocketIP", "X-Appengine-User-IP", "X-Appengine-Remote-Addr", "X-Envoy-External-Address",
		"X-NF-Client-Connection-IP", "X-Vercel-Forwarded-For", "X-Custom-IP-Authorization",
	}, Action: fromTrusted, Why: "the address of the client: chi, Rails, PHP, Java and many plugins take it from one of them"},
	{Names: []string{"X-Host", "X-HTTP-Host-Override", "X-Scheme", "X-URL-Scheme", "Front-End-Https", "X-ARR-SSL", "WL-Proxy-SSL",
		"CloudFront-Forwarded-Proto", "CF-Visitor"}, Action: fromTrusted, Why: "host and scheme: they select another site"},
	{Names: []string{"X-Original*", "X-Rewrite-URL", "X-Override-URL", "X-Script-Name", "X-Envoy-Original-Path", "X-WAWS-Unencoded-URL", "X-MS-Original-URL"}, Action: fromTrusted,
		Why: "`X-Original-URL`, `-URI`, `-Host`, `-Method` and the like: IIS, Symfony, Laminas and WSGI servers take the path from them, which bypasses the rule for it"},
	{Names: []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"}, Action: forwarded,
		Why: "400 where a rule reads the method or counts tokens. Removing them would change the request: a DELETE would become a POST"},
	{Label: "a header field that a rule reads, twice", Action: forwarded, Why: "400, unless the field is a list such as `Accept`"},
}

var (
	actions  = map[string]fieldAction{} // by canonical name
	prefixes []string                   // of names, all with fromTrusted
)

func init() {
	for _, row := range fieldRows {
		for _, name := range row.Names {
			if start, ok := strings.CutSuffix(name, "*"); ok {
				prefixes = append(prefixes, http.CanonicalHeaderKey(start))
			} else {
				actions[http.CanonicalHeaderKey(name)] = row.Action
			}
		}
	}
}

func actionOf(name string) fieldAction {
	if f, ok := actions[name]; ok {
		return f
	}
	if strings.HasPrefix(name, "X-") {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return fromTrusted
			}
		}
	}
	return forwarded
}

// The values of [Config.UnderscoresInHeaders].
const (
	dropUnderscores   = "drop"
	passUnderscores   = "pass"
	refuseUnderscores = "refuse"
)

func (p *Proxy) actionOf(name string) fieldAction {
	switch {
	case httpfacts.IsPlainName(name):
		if f := actionOf(name); f != forwarded || name != p.source.ForwardedHeader() {
			return f
		}
		return fromTrusted
	case p.config.UnderscoresInHeaders == passUnderscores:
		return p.foldedAction(name)
	}
	return removed
}

// foldedAction returns the action for a name that some servers read with hyphens. Clients must not write a field
// that the proxy writes, or that rules read, under its hyphenated name.
func (p *Proxy) foldedAction(name string) fieldAction {
	folded := []byte(name)
	for i, c := range folded {
		if !httpfacts.IsPlainName(string(c)) {
			folded[i] = '-'
		}
	}
	plain := http.CanonicalHeaderKey(string(folded))
	if f := p.actionOf(plain); f == fromTrusted {
		return f
	} else if _, known := actions[plain]; !known {
		return f
	}
	return removed
}

func (p *Proxy) reads(name string, trusted bool) bool {
	switch p.actionOf(name) {
	case removed:
		return false
	case fromTrusted:
		return trusted
	case written: // mete ignores forwarded fields from untrusted clients
		return trusted || name != "Forwarded" && !strings.HasPrefix(name, "X-Forwarded")
	}
	return true
}

func (p *Proxy) forwards(name string, trusted bool) bool {
	f := p.actionOf(name)
	return f == forwarded || f == fromTrusted && trusted
}

// findOddName returns the name of a header or trailer field that [Config.UnderscoresInHeaders] rejects.
func findOddName(r *http.Request) (name string, ok bool) {
	for _, fields := range [...]http.Header{r.Header, r.Trailer} {
		for name := range fields {
			if !httpfacts.IsPlainName(name) {
				return name, true
			}
		}
	}
	return "", false
}
