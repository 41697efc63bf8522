// SPDX-License-Identifier: Apache-2.0

// Package release makes a version of this tree with scripts/release and installs it
// as users do: by go install and go get, from the Debian and the RPM package, and from
// the image. It has only tests. Each needs minutes, because the release has programs
// for six platforms.
package release
