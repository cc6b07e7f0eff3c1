/// Headers of Carillon, in addition to those of RFC 8030.
package enum HeaderNames {
    /// In the response to a sender: the state of the message at that moment (`waiting`, `offered`, or an outcome).
    package static let outcome = "Carillon-Outcome"
    /// In every response of a route: the server's identifier. This header shows a client that the server sent a response without
    /// a body.
    package static let server = "Carillon-Server"
}
