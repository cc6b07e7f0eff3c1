/// How the home that runs a request of a route is found.
///
/// ``table`` has a case for each route. In a server with several homes, ``HomeFinder`` finds the home of a request, and
/// ``RequestForwarder`` forwards the request. With one home, each request runs where it arrives, and the table is not used.
enum RouteHome: Hashable, CaseIterable, Sendable {
    /// Independent of homes. The process that accepted the request answers from its own settings and memory.
    case process
    /// Independent of homes. The route reads or changes settings that all processes read from the store.
    case registry
    /// Independent of homes. The route reads or changes rows of several shards in the store.
    case store
    /// The home of the device in the channel token, which is the path parameter `token`.
    case tokenInPath
    /// The home of the device in the channel token, which is the header field `X-Good-GNP-Token`.
    case tokenInField
    /// The home of the shard in the position of the message. Its id is the path parameter `id`.
    case message
    /// The home that the app of the client key and the field `registration` determine, so that a repetition reaches the same
    /// home. A request without the field runs where it arrives, and the id of the device is created in a shard of the home that
    /// runs it.
    case newDevice
    /// The home of the device that owns the credential. A request through a socket runs at the home of the socket's device. An
    /// event stream stays in the process that accepted it, and is a session at this home.
    case credential
    /// The home of the device whose id is the path parameter `device`.
    case device
    /// The home of the item that is the path parameter `item`, in the app of the sender key or of the query.
    case item
    /// The home of the app that is the path parameter `app`.
    case appInPath
    /// The home of the app of the sender key. With an operator's key, the query names the app.
    case appOfSender
    /// Independent of homes. The request runs where it arrives, and the id is created in a shard of the home that runs it.
    case newAttachment
    /// The home of the attachment whose id is the path parameter `attachment`.
    case attachment
    /// The request runs where it arrives. Its route calls each home for the shards of the home.
    case eachHome
    /// The request runs where it arrives. Each part of the body has its own home, which the route calls, and its own result.
    case parts
}
