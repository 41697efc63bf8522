// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
)

func parameterNames(s scheme) []string {
	names := []string{"prefix", "timeout", "lease_share"}
	if s.form == formSocket {
		names = append(names, "db")
	}
	if s.form == formSentinels {
		names = append(names, "sentinel_username", "sentinel_password")
	}
	if s.tls {
		names = append(names, "ca", "cert", "key", "server_name")
	}
	return names
}

func (t *target) parseQuery(s scheme, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters must be percent-encoded name=value pairs joined by &")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(parameterNames(s), name):
			return unknownParameter(s, name)
		case len(values[name]) != 1 || values[name][0] == "":
			return fmt.Errorf("%s: must appear once, with a value", name)
		}
	}
	t.config.Prefix = cmp.Or(values.Get("prefix"), DefaultPrefix)
	if values.Has("timeout") {
		err = t.parseTimeout(values.Get("timeout"))
	}
	if values.Has("lease_share") {
		err = errors.Join(err, t.parseLeaseShare(values.Get("lease_share")))
	}
	if values.Has("db") {
		err = errors.Join(err, t.parseDatabase(values.Get("db")))
	}
	t.client.Sentinel.Username = values.Get("sentinel_username")
	t.client.Sentinel.Password = values.Get("sentinel_password")
	if t.client.Sentinel.Username != "" && t.client.Sentinel.Password == "" {
		err = errors.Join(err, errors.New("sentinel_username: sentinel_password is missing"))
	}
	return errors.Join(err, t.loadCertificates(values))
}

// unknownParameter explains an unknown parameter. The error contains the name, but not the value.
func unknownParameter(s scheme, name string) error {
	secure := scheme{form: s.form, tls: true}
	switch {
	case slices.Contains([]string{"insecure", "skip_verify", "tls_insecure", "insecure_skip_verify"}, name):
		return fmt.Errorf("%s: certificates are always verified: set the trusted CA with ca=FILE", name)
	case !s.tls && s.form != formSocket && slices.Contains(parameterNames(secure), name):
		return fmt.Errorf("%s: requires TLS: use rediss instead of redis", name)
	case slices.Contains(parameterNames(scheme{form: formSentinels}), name):
		return fmt.Errorf("%s: requires redis+sentinel://", name)
	case name == "db":
		return errors.New("db: requires redis+unix://: write the database after the host, as in redis://localhost/1")
	}
	return fmt.Errorf("unknown parameter %q: valid parameters are %s", name, strings.Join(parameterNames(s), ", "))
}

func (t *target) loadCertificates(values url.Values) error {
	c := t.client.TLSConfig
	if c == nil {
		return nil
	}
	c.ServerName = values.Get("server_name")
	if file := values.Get("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("ca: %s: contains no PEM certificate", file)
		}
	}
	cert, key := values.Get("cert"), values.Get("key")
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return errors.New("cert and key: set both or neither")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("cert and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}

func (t *target) parseTimeout(text string) (err error) {
	t.config.Timeout, err = bucket.ParseDuration(text)
	if err != nil || t.config.Timeout == 0 {
		return fmt.Errorf("timeout: %q: must be a number above 0 with a unit, such as 500ms or 2s", text)
	}
	return nil
}

func (t *target) parseLeaseShare(text string) (err error) {
	t.config.LeaseShare, err = strconv.ParseFloat(text, 64)
	if err != nil || !(t.config.LeaseShare > 0 && t.config.LeaseShare <= 1) {
		return fmt.Errorf("lease_share: %q: must be above 0, and 1 at most", text)
	}
	return nil
}
