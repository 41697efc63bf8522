// SPDX-License-Identifier: Apache-2.0

// Package release makes a version of this tree with scripts/release. It installs the version as users do: by go
// install and go get, from packages, and from the image. Each test takes minutes, because the release has
// programs for six platforms.
package release
