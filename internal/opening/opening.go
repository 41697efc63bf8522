// SPDX-License-Identifier: Apache-2.0

// Package opening explains errors of opening a shared store.
package opening

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/store"
)

// Explain adds the server and a remedy to err. invalid is the error of parsing the URL, nil for a valid one.
// Explain shows only the scheme of an invalid URL, because other parts may be a password.
func Explain(rawURL string, invalid error, server string, err error) error {
	scheme, _, isURL := strings.Cut(rawURL, "://")
	switch {
	case invalid == nil && errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("server %s: %w; start it, or correct the address", server, err)
	case invalid == nil:
		return fmt.Errorf("server %s: %w", server, err)
	case isURL:
		return fmt.Errorf("url %.32q: %w", scheme+"://…", err)
	}
	return fmt.Errorf("url without \"://\": %w", err)
}
