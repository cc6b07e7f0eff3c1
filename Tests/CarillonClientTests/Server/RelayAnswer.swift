import Foundation

@testable import CarillonClient

/// The answer of a proxy, a login page or another program in the server's place.
enum RelayAnswer: CaseIterable, Sendable {
    case loginPage, noContent, redirect, unauthorized, forbidden, notFound, gone, loginRequired, empty, emptyObject

    var status: Int {
        switch self {
        case .loginPage, .empty, .emptyObject: 200
        case .noContent: 204
        case .redirect: 302
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .gone: 410
        case .loginRequired: 511
        }
    }

    var body: String {
        switch self {
        case .noContent, .empty: ""
        case .emptyObject: "{}"
        // A problem document of no Carillon server.
        case .gone: #"{"type":"about:blank","title":"Gone","status":410,"detail":"","code":"it_is_gone"}"#
        case .loginPage, .redirect, .unauthorized, .forbidden, .notFound, .loginRequired: "<html><body>Log in.</body></html>"
        }
    }

    var contentType: String {
        switch self {
        case .gone: "application/problem+json"
        case .emptyObject: "application/json"
        default: "text/html; charset=utf-8"
        }
    }

    var web: WebAnswer {
        WebAnswer(status: status, retryAfter: "1000", body: Data(body.utf8), contentType: contentType)
    }

    /// - Parameter isHead: Whether the request was HEAD, so that there is no body.
    func file(isHead: Bool) -> WebAnswer {
        WebAnswer(
            status: status,
            headers: ["content-type": contentType, "location": "http://login.example/", "retry-after": "1000"],
            body: isHead ? Data() : Data(body.utf8))
    }
}
