// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/policy"
)

const (
	// fetchTimeout bounds one poll with its redirects and the signature.
	fetchTimeout = 30 * time.Second

	// idleTimeout closes connections between distant polls.
	idleTimeout = time.Minute

	maxRedirects = 3

	// maxETagBytes bounds the ETag in conditional requests. Longer ones are ignored.
	maxETagBytes = 1 << 10

	maxSignatureBytes = 4 << 10
)

// IsURL reports whether a policy setting is an address and not a file.
func IsURL(setting string) bool {
	scheme, _, ok := strings.Cut(setting, "://")
	return ok && (strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http"))
}

// ParseURL parses the address in a policy setting. Its errors contain no credentials.
func ParseURL(setting string) (*url.URL, error) {
	u, err := url.Parse(setting)
	switch {
	case err != nil: // which has the text, and so the credentials
		return nil, errors.New("not a valid URL: write https://HOST/PATH")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("the address has no host: write https://HOST/PATH")
	case u.Fragment != "":
		return nil, errors.New("the address has a fragment: remove the part from # on")
	case u.Path == "" || strings.HasSuffix(u.Path, "/"):
		return nil, errors.New("the address has no file: write https://HOST/policy.yaml")
	}
	return u, checkScheme(u)
}

// checkScheme rejects addresses without transport security.
func checkScheme(u *url.URL) error {
	switch {
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return errors.New("http:// is allowed only for loopback addresses, because others could change the policy in transit: write https://")
	}
	return fmt.Errorf("the scheme is %q: write https://", u.Scheme)
}

// IsLoopback reports whether a host is this machine, without a DNS lookup.
func IsLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Shown returns an address without user, password and query.
func Shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// ShownSetting returns a policy setting without credentials.
func ShownSetting(setting string) string {
	u, err := url.Parse(setting)
	if err != nil {
		return "an invalid URL"
	}
	return Shown(u)
}

type fetcher struct {
	url    *url.URL
	client *http.Client
	keys   policysign.Keys
}

// newFetcher returns a fetcher that trusts the CA certificates in caFile, or the system roots if caFile is empty.
func newFetcher(u *url.URL, caFile string, keys policysign.Keys) (*fetcher, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: idleTimeout,
		TLSHandshakeTimeout: fetchTimeout, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile != "" {
		var err error
		if transport.TLSClientConfig.RootCAs, err = smallfile.Authorities(caFile); err != nil {
			return nil, err
		}
	}
	return &fetcher{url: u, keys: keys, client: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}, nil
}

// checkRedirect allows a bounded number of redirects to secure addresses. It removes the Referer header, because
// the query of the address may contain a token.
func checkRedirect(r *http.Request, via []*http.Request) error {
	r.Header.Del("Referer")
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if r.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
		return fmt.Errorf("redirect from https:// to %s:// rejected", r.URL.Scheme)
	}
	return checkScheme(r.URL)
}

type fetched struct {
	data, signature []byte
	etag            string
}

// errChanged means that the signature does not match the bundle that was read before.
var errChanged = errors.New("the signature does not match the bundle")

// fetch requests the bundle with If-None-Match. It returns nil if the bundle has not changed.
func (f *fetcher) fetch(ctx context.Context, etag string) (*fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, err := f.fetchPair(ctx, etag)
	if errors.Is(err, errChanged) { // the bundle may have changed between the requests
		got, err = f.fetchPair(ctx, "")
	}
	return got, err
}

func (f *fetcher) fetchPair(ctx context.Context, etag string) (*fetched, error) {
	data, tag, err := f.get(ctx, f.url, etag, policy.MaxFileBytes)
	if err != nil || data == nil {
		return nil, err
	}
	at := *f.url
	at.Path += policysign.Suffix
	if at.RawPath != "" { // keep the escapes of the path
		at.RawPath += policysign.Suffix
	}
	signature, _, err := f.get(ctx, &at, "", maxSignatureBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", policysign.ErrSignature, err)
	}
	if err := f.keys.Verify(data, signature); err != nil {
		return nil, fmt.Errorf("%s: %w: %w: %w", Shown(f.url), policysign.ErrSignature, errChanged, err)
	}
	return &fetched{data, signature, tag}, nil
}

// get requests one address. It returns nil if the ETag still matches.
func (f *fetcher) get(ctx context.Context, at *url.URL, etag string, most int64) (data []byte, tag string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, "", fmt.Errorf("%s: cannot create the request", Shown(at))
	}
	r.Header.Set("User-Agent", "mete")
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Shown(at), withoutURL(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return nil, "", nil
	case resp.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("%s: status %d", Shown(at), resp.StatusCode)
	case resp.ContentLength > most:
		return nil, "", fmt.Errorf("%s: larger than %d bytes", Shown(at), most)
	}
	data, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", Shown(at), withoutURL(err))
	case int64(len(data)) > most:
		return nil, "", fmt.Errorf("%s: larger than %d bytes", Shown(at), most)
	case len(data) == 0:
		return nil, "", fmt.Errorf("%s: the response is empty", Shown(at))
	}
	if tag = resp.Header.Get("Etag"); len(tag) > maxETagBytes {
		tag = ""
	}
	return data, tag, nil
}

// withoutURL removes the URL from an error, because its query may contain a token and redirects may lead anywhere.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("host name not found: %s", e.Err)
	}
	return err
}
