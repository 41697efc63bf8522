// SPDX-License-Identifier: Apache-2.0

// Package opening explains why a limiter over a shared store could not be made.
package opening

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/store"
)

// Explain adds the place and the remedy to the error of a store that could not be opened.
// Invalid is the error of its URL, nil for a valid one, and server its address. Explain
// shows no part of an invalid URL but its scheme, because any other may be a password.
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
