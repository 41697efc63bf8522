// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/policy"
)

// Answers describe the first limiter as text. Empty fields have a default.
type Answers struct {
	// Front is the source of requests. It is "api" for programs that call POST /v1/take, the URL of a service
	// behind mete, or the name of a gateway.
	Front string

	// By identifies clients: "address", "key", "user" or an attribute.
	By string

	// Keys verify bearer tokens: a file or URL of a JSON Web Key Set. Only limits by a claim behind a gateway need
	// them.
	Keys string

	// Rate is the limit, such as "100/1m" or "100 per minute". Burst is the largest burst, in requests.
	Rate, Burst string

	Store string
}

const (
	defaultFront = "api"
	defaultBy    = "address"
	defaultRate  = "100/1m"
	defaultStore = "memory:"
)

// maxBurst bounds the burst, because a larger one is probably a typo.
const maxBurst = 1_000_000

// gateways are the values of decision_profile.
var gateways = []string{"nginx", "nginx-lua", "haproxy", "caddy", "traefik"}

// A plan contains the parsed answers.
type plan struct {
	upstream string // if mete is the gateway
	gateway  string // external gateway; both are empty for the API
	by       policy.Attribute
	keys     string
	rate     rate
	burst    int64
	store    string
}

// A rate is a rate in the syntax of policy files.
type rate struct {
	bucket.Rate
	amount, per string
}

func (r rate) text() string { return r.amount + "/" + r.per }

// plan parses the answers. It joins all errors.
func (a Answers) plan() (p plan, err error) {
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	p.upstream, p.gateway, err = parseFront(valueOr(a.Front, defaultFront))
	note(err)
	p.by, err = parseBy(valueOr(a.By, defaultBy))
	note(err)
	p.keys = a.Keys
	if a.Keys != "" && (p.by.Source != policy.SourceJWT || !p.verifies()) {
		note(errors.New("jwks: only a limit by a claim, such as jwt:sub, behind a gateway or with an upstream needs a key set"))
	}
	p.rate, err = parseRate(valueOr(a.Rate, defaultRate))
	note(err)
	if err == nil {
		p.burst, err = parseBurst(valueOr(a.Burst, p.rate.defaultBurst()), p.rate)
		note(err)
	}
	p.store, err = parseStore(valueOr(a.Store, defaultStore))
	note(err)
	return p, errors.Join(errs...)
}

// verifies reports whether mete verifies bearer tokens. Programs that call the API send the claims themselves.
func (p *plan) verifies() bool { return p.upstream != "" || p.gateway != "" }

func valueOr(text, fallback string) string {
	if text = strings.TrimSpace(text); text == "" {
		return fallback
	}
	return text
}

func parseFront(text string) (upstream, gateway string, err error) {
	lower := strings.ToLower(text)
	switch {
	case lower == "api":
		return "", "", nil
	case slices.Contains(gateways, lower):
		return "", lower, nil
	case !strings.Contains(text, "://"):
		return "", "", fmt.Errorf("front: %q is unknown: write api, %s, or the URL of your service, such as http://127.0.0.1:3000", text, strings.Join(gateways, ", "))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("front: not a URL: write one such as http://127.0.0.1:3000")
	case !slices.Contains([]string{"http", "https", "h2c"}, u.Scheme):
		return "", "", fmt.Errorf("front: the scheme %q is unknown: write http://, https:// or h2c://", u.Scheme)
	case u.Hostname() == "":
		return "", "", fmt.Errorf("front: the URL has no host: write one such as http://127.0.0.1:3000")
	case u.User != nil:
		return "", "", fmt.Errorf("front: the URL has a password: remove it, mete forwards the credentials of the client")
	}
	return text, "", nil
}

// parseBy parses the attribute that identifies clients.
func parseBy(text string) (policy.Attribute, error) {
	name := text
	switch strings.ToLower(text) {
	case "address", "ip":
		name = "ip:address"
	case "key":
		name = "header:x-api-key"
	case "user":
		name = "jwt:sub"
	}
	a, err := policy.ParseAttribute(name)
	switch {
	case err != nil:
		return a, fmt.Errorf("by: %s: write address, key, user or an attribute such as header:x-tenant", strings.TrimPrefix(err.Error(), "policy: invalid attribute: "))
	case a.Source == policy.SourceMethod || a.Source == policy.SourcePath || a.Source == policy.SourceHost:
		return a, fmt.Errorf("by: %s identifies pages, not clients: write address, key, user or an attribute such as header:x-tenant", a)
	case a.Source == policy.SourceCustom && !strings.Contains(text, ":"):
		return a, fmt.Errorf("by: %q is unknown: write address, key, user or an attribute such as header:x-tenant", text)
	}
	return a, nil
}

// spoken matches a rate in words, such as 100 per minute.
var spoken = regexp.MustCompile(`(?i)^\s*([0-9.]+)\s*(?:/|per|an?|each|every)\s*([0-9.]*)\s*([a-zµ]+)\s*$`)

var units = map[string]string{"second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d"}

// parseRate parses a rate in words or in the syntax of policy files.
func parseRate(text string) (rate, error) {
	const remedy = "write a number of requests and a time, such as 100/1m or 100 per minute"
	parts := spoken.FindStringSubmatch(text)
	if parts == nil {
		return rate{}, fmt.Errorf("limit: %q is not a rate: %s", text, remedy)
	}
	unit := strings.ToLower(parts[3])
	if short, ok := units[strings.TrimSuffix(unit, "s")]; ok {
		unit = short
	}
	r := rate{amount: parts[1], per: valueOr(parts[2], "1") + unit}
	var err error
	if r.Rate, err = bucket.ParseRate(r.text()); err == nil {
		_, err = bucket.NewLimit(bucket.Token, r.Rate)
	}
	if err != nil {
		return rate{}, fmt.Errorf("limit: %q is not a rate: %s", text, remedy)
	}
	return r, nil
}

// defaultBurst returns a fifth of the tokens of the rate.
func (r rate) defaultBurst() string {
	return strconv.FormatInt(min(max(r.Tokens.Whole()/5, 1), maxBurst), 10)
}

func parseBurst(text string, r rate) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxBurst {
		return 0, fmt.Errorf("burst: %q must be a whole number between 1 and %d", text, maxBurst)
	}
	if _, err := bucket.NewLimit(bucket.Tokens(n)*bucket.Token, r.Rate); err != nil {
		return 0, fmt.Errorf("burst: %d is too large for a rate of %s: write a smaller burst or a rounder rate", n, r.text())
	}
	return n, nil
}

// parseStore checks the URL of a store. The words memory, redis and postgres stand for local stores.
func parseStore(text string) (string, error) {
	switch strings.ToLower(text) {
	case "memory":
		text = defaultStore
	case "redis":
		text = "redis://127.0.0.1:6379"
	case "postgres", "postgresql":
		text = "postgres://127.0.0.1:5432/mete"
	}
	_, err := storeurl.Parse(text)
	return text, err
}
