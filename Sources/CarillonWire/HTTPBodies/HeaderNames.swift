/// Headers that are Carillon's own, beside those of RFC 8030.
package enum HeaderNames {
    /// In the answer to a sender: what is known of the message at that moment (`waiting`, `offered`, or an outcome).
    package static let outcome = "Carillon-Outcome"
    /// In every response of a route: the server's id. A client knows by it that the server sent a response without a body.
    package static let server = "Carillon-Server"
}
