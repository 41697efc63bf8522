// SPDX-License-Identifier: Apache-2.0

package requestpath

import "strings"

func Method(sent string) string { return strings.ToUpper(sent) }
