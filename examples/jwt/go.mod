module github.com/metehq/mete/examples/jwt

go 1.26.0

require (
	github.com/metehq/mete v0.0.0
	github.com/metehq/mete/jwtclaims v0.0.0
)

require (
	github.com/MicahParks/jwkset v0.11.3 // indirect
	github.com/MicahParks/keyfunc/v3 v3.9.0 // indirect
	github.com/golang-jwt/jwt/v5 v5.3.1 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace (
	github.com/metehq/mete => ../..
	github.com/metehq/mete/jwtclaims => ../../jwtclaims
)
