extension APNsSimulator {
    /// A fault that the real service can have, and that a provider must handle.
    public enum Fault: Hashable, Sendable {
        /// The body of a faulty response.
        public enum Body: Hashable, Sendable {
            /// An empty body.
            case empty
            /// An HTML page, as a proxy on the way sends it.
            case html
            /// Text of the given number of bytes.
            case huge(bytes: Int)
            /// The given text, with the content type of JSON.
            case text(String)
        }

        /// The last stream that a GOAWAY contains.
        public enum LastStream: String, Hashable, Sendable, CaseIterable {
            /// This request, which is still served.
            case this
            /// The stream before this request. This request is dropped.
            case before
            /// The last stream that was processed already and whose response is late. All others in flight are dropped.
            case none
            /// The highest possible number: the first GOAWAY of a graceful end.
            case all
        }

        /// Responds with a reason and its status. With 410, the timestamp is the present time.
        case reject(Reason)
        /// Responds with any status and body.
        case answer(status: Int, Body)
        /// Responds correctly, after a delay.
        case delay(Duration)
        /// Never responds to this request.
        case silence
        /// Resets the stream, and resets it a second time if `isRepeated` is true, as observed at the real service.
        case reset(HTTP2ErrorCode, isRepeated: Bool = false)
        /// Starts a response with status 200, and resets the stream before its end.
        case breakOff(HTTP2ErrorCode)
        /// Sends GOAWAY, with a reason of APNs or any text. With `closes`, the connection is closed after the streams up to
        /// the last one are served.
        case goAway(reason: String?, last: LastStream, code: HTTP2ErrorCode = .noError, closes: Bool = true)
        /// Closes the connection without a GOAWAY.
        case close
        /// Sends SETTINGS with this limit of open streams, and continues.
        case streamLimit(Int)
        /// Sends SETTINGS with this initial window of each stream, and continues.
        case streamWindow(Int)
        /// Refuses all other open streams (RST_STREAM REFUSED_STREAM), and continues.
        case refuseOthers
        /// Continues to read, but sends nothing more on this connection, not even the response to a PING.
        case wedge
    }

    /// A fault, with the requests and the moment at which it happens.
    public struct FaultRule: Hashable, Sendable {
        /// The progress of the request.
        public enum Moment: String, Hashable, Sendable, CaseIterable {
            /// After the headers of the request. A response is then sent before the body is read.
            case headers
            /// After the whole request was received, and before it is processed.
            case request
            /// After the request was processed: the push is delivered, and only the response has the fault.
            case processed
        }

        /// The fault that happens.
        public var fault: Fault
        /// The progress of the request when the fault happens.
        public var moment: Moment
        /// Whether a response before the end of the body is followed by RST_STREAM NO_ERROR. RFC 9113 section 8.1 allows this
        /// to a server that does not need the rest of the body.
        public var stopsBody: Bool
        /// How many matching requests pass before the first fault.
        public var skip: Int
        /// How often the fault happens; nil for no limit.
        public var times: Int?
        /// The probability of the fault for each matching request, from 0 to 1. The result depends on the seed and on the
        /// numbers of the connection and of the stream, so that the same requests have the same faults again.
        public var rate: Double
        /// Limits the rule to requests whose path ends with this text, for instance a device token.
        public var pathSuffix: String?
        /// Limits the rule to this connection; the first one is 1.
        public var connection: Int?

        /// Makes a rule. With default arguments, the fault happens to every request.
        public init(
            _ fault: Fault, at moment: Moment = .request, stopsBody: Bool = false, skip: Int = 0, times: Int? = nil,
            rate: Double = 1,
            pathSuffix: String? = nil, connection: Int? = nil
        ) {
            self.fault = fault
            self.moment = moment
            self.stopsBody = stopsBody
            self.skip = skip
            self.times = times
            self.rate = rate
            self.pathSuffix = pathSuffix
            self.connection = connection
        }
    }
}

typealias Fault = APNsSimulator.Fault
typealias FaultRule = APNsSimulator.FaultRule
