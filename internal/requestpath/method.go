// SPDX-License-Identifier: Apache-2.0

package requestpath

import "strings"

// Method returns the method of a request in upper case.
func Method(sent string) string { return strings.ToUpper(sent) }
