// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"time"
)

const (
	// maxKeySetBytes bounds a key set. A larger one is rejected.
	maxKeySetBytes = 1 << 20

	// fetchTimeout bounds the whole request for a key set.
	fetchTimeout = 5 * time.Second

	// maxRedirects bounds the redirects that are followed.
	maxRedirects = 3
)

type source func(ctx context.Context) ([]byte, error)

func newSource(c Config) source {
	if !isURL(c.KeySet) {
		return func(context.Context) ([]byte, error) { return readFile(c.KeySet) }
	}
	client := http.Client{Timeout: fetchTimeout}
	if c.Client != nil {
		client = *c.Client
	}
	before := client.CheckRedirect
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https":
			return errors.New("redirect from https to http: the keys could be forged")
		case before != nil:
			return before(r, via)
		}
		return nil
	}
	return func(ctx context.Context) ([]byte, error) { return fetch(ctx, &client, c.KeySet) }
}

func readFile(path string) ([]byte, error) {
	// Reading a pipe could block forever, and so could Close.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := client.Do(r)
	if failed, ok := errors.AsType[*neturl.Error](err); ok {
		err = fmt.Errorf("%s: %w", redactKeySet(url), failed.Err) // the original text contains the query
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s returned status %s", redactKeySet(url), resp.Status)
	}
	return readAll(resp.Body)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxKeySetBytes+1))
	if err == nil && len(data) > maxKeySetBytes {
		err = fmt.Errorf("key set is larger than %d bytes", maxKeySetBytes)
	}
	return data, err
}
