// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore/internal/schema"
)

// The parameters of mete and of pgx. Others are errors, because pgx would send them to the server as settings.
var (
	ownParameters = []string{"schema", "prefix", "durable", "timeout", "max_batch", "max_queue", "max_in_flight"}

	pgxParameters = []string{
		"host", "port", "user", "password", "database", "dbname", "passfile", "service", "servicefile",
		"sslmode", "sslrootcert", "sslcert", "sslcertmode", "sslkey", "sslpassword", "sslsni", "sslnegotiation",
		"channel_binding", "require_auth", "krbsrvname", "krbspn", "min_protocol_version", "max_protocol_version",
		"application_name", "connect_timeout", "target_session_attrs", "options",
		"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime",
		"pool_max_conn_lifetime_jitter", "pool_max_conn_idle_time", "pool_health_check_period", "pool_ping_timeout",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity",
	}
)

const maxCount = 1 << 24

type parameters map[string]string

func parseQuery(query string) (parameters, error) {
	values := make(parameters)
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name, err := url.PathUnescape(name)
		value, err2 := url.PathUnescape(value)
		switch {
		case !ok || err != nil || err2 != nil || strings.ContainsRune(value, 0):
			return nil, errors.New("the parameters must be percent-encoded name=value pairs joined by &")
		case !slices.Contains(ownParameters, name) && !slices.Contains(pgxParameters, name):
			return nil, unknownParameter(name)
		case value == "" || values.has(name):
			return nil, fmt.Errorf("%s: must appear once, with a value", name)
		}
		values[name] = value
	}
	return values, nil
}

// unknownParameter explains an unknown parameter. The error contains the name, but not the value.
func unknownParameter(name string) error {
	switch name {
	case "ssl", "tls":
		return fmt.Errorf("%s: use sslmode=verify-full, and set the trusted CA with sslrootcert=FILE", name)
	case "search_path":
		return errors.New("search_path: use schema=NAME")
	}
	return fmt.Errorf("unknown parameter %q: valid parameters are %s, and those of PostgreSQL's clients (sslmode, …);"+
		" write a server setting as options=-cNAME%%3DVALUE", name, strings.Join(ownParameters, ", "))
}

func (p parameters) has(name string) bool { _, ok := p[name]; return ok }

func (p parameters) encode() string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(ownParameters, name) {
			pairs = append(pairs, name+"="+strings.ReplaceAll(url.QueryEscape(p[name]), "+", "%20"))
		}
	}
	return strings.Join(pairs, "&")
}

// secrets returns the passwords of a URL. The parameter place is the part before the parameters.
func (p parameters) secrets(place string) []string {
	all := []string{p["password"], p["sslpassword"]}
	if user, _, ok := strings.Cut(place, "@"); ok {
		_, password, _ := strings.Cut(user, ":")
		plain, _ := url.PathUnescape(password)
		all = append(all, password, plain)
	}
	return all
}

func (p parameters) parseConfig() (c Config, err error) {
	c.Schema, c.Prefix = p["schema"], p["prefix"]
	if p.has("schema") {
		err = schema.Check(c.Schema)
	}
	if text, ok := p["durable"]; ok {
		c.Durable = text == "true"
		if text != "true" && text != "false" {
			err = errors.Join(err, fmt.Errorf("durable: %q: write true or false", text))
		}
	}
	if text, ok := p["timeout"]; ok {
		var bad error
		if c.Timeout, bad = bucket.ParseDuration(text); bad != nil || c.Timeout == 0 {
			err = errors.Join(err, fmt.Errorf("timeout: %q: must be a number above 0 with a unit, such as 500ms or 2s", text))
		}
	}
	return c, errors.Join(err, p.parseCount("max_batch", &c.MaxBatch), p.parseCount("max_queue", &c.MaxQueue), p.parseCount("max_in_flight", &c.MaxInFlight))
}

// parseCount parses a number into n, if it is present.
func (p parameters) parseCount(name string, n *int) (err error) {
	text, ok := p[name]
	if !ok {
		return nil
	}
	if *n, err = strconv.Atoi(text); err != nil || *n < 1 || *n > maxCount {
		return fmt.Errorf("%s: %q: must be a number between 1 and %d", name, text, maxCount)
	}
	return nil
}
