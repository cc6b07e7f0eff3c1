import Foundation

/// Raises and checks the limit of open files, for this process and the servers that it starts.
enum OpenFiles {
    static func raiseLimit() {
        var limit = rlimit()
        getrlimit(noFileResource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(noFileResource, &limit)
    }

    static func check(room count: Int) throws {
        var limit = rlimit()
        getrlimit(noFileResource, &limit)
        guard limit.rlim_cur > rlim_t(count + 500) else {
            throw NotMeasured("a process may open \(limit.rlim_cur) files here, and \(count) connections need more")
        }
    }

    #if canImport(Glibc)
        private static let noFileResource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let noFileResource = RLIMIT_NOFILE
    #endif
}
