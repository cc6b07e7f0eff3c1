import CarillonWire

/// The result of one request to a server.
enum ServerAnswer<Value: Sendable>: Sendable {
    case success(Value)
    /// - Parameter wait: The wait that the response requests.
    case refused(ServerRefusal, wait: Duration?)
    /// Another program sent the response. The request can be sent again later.
    case foreign(PushError, wait: Duration?)
    /// There is no complete response.
    case unreachable(ConnectionFailure)
}

/// The documented form of the response of a request that succeeds.
struct SuccessForm<Value: Sendable> {
    /// Returns the verdict on a response. `isNameless` is true for a server that does not name itself.
    let verdict: (_ answer: WebAnswer, _ isHead: Bool, _ isNameless: Bool) -> ServerResponse.Verdict<Value>

    /// A success with content.
    ///
    /// - Parameter read: Returns the value of a success with its documented form; nil for any other response.
    static func content(_ read: @escaping (WebAnswer) -> Value?) -> SuccessForm {
        SuccessForm { answer, isHead, isNameless in
            answer.response(isHead: isHead).verdict(isNameless: isNameless) { _ in read(answer) }
        }
    }
}

extension SuccessForm where Value: Decodable {
    /// A success with a status and a JSON body.
    static func json(_ status: Int, as type: Value.Type) -> SuccessForm {
        .content { $0.response().json(status, as: type) }
    }
}

extension SuccessForm where Value == Void {
    /// A success with the status 204.
    static var noContent: SuccessForm {
        SuccessForm { answer, isHead, isNameless in
            answer.response(isHead: isHead).verdictOnNoContent(isNameless: isNameless)
        }
    }
}
