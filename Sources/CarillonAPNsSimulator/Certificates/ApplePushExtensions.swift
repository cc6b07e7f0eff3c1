import SwiftASN1
import X509

/// The extensions of Apple's push certificates.
enum ApplePushExtensions {
    static let development: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 1]
    static let production: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 2]
    static let topics: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 6, 3, 6]
    /// The attribute of the subject that contains the app's APNs topic.
    static let userIdentifier: ASN1ObjectIdentifier = [0, 9, 2342, 19_200_300, 100, 1, 1]

    /// The value of the extension of an environment.
    static let null: ArraySlice<UInt8> = [0x05, 0x00]

    /// Encodes the APNs topics, each followed by a list with its use: `app`, `voip` or `complication`.
    static func encoded(_ topics: [String]) throws -> ArraySlice<UInt8> {
        var serializer = DER.Serializer()
        try serializer.appendConstructedNode(identifier: .sequence) { list in
            for topic in topics {
                try list.serialize(ASN1UTF8String(topic))
                let use = PushType.suffix(of: topic)?.dropFirst() ?? "app"
                try list.appendConstructedNode(identifier: .sequence) { try $0.serialize(ASN1UTF8String(String(use))) }
            }
        }
        return serializer.serializedBytes[...]
    }

    static func decodedTopics(_ bytes: ArraySlice<UInt8>) throws -> [String] {
        try DER.sequence(try DER.parse(bytes), identifier: .sequence) { nodes in
            var topics: [String] = []
            while let node = nodes.next() {
                if node.identifier == .utf8String { topics.append(String(try ASN1UTF8String(derEncoded: node))) }
            }
            return topics
        }
    }
}
