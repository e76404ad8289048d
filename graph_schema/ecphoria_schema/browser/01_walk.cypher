// en: __WALK__
// en: What belongs to one __ROOT__, along the path `__PATH__`. Drawn as a graph; what has sensitive properties stands in the table only.
// zh: __WALK__
// zh: 一位__ROOT__名下的事物，沿路径 `__PATH__`。以图显示；带有敏感属性的事物只列在表格中。
MATCH (__START__ {key: $tenant + '|__ROOTTYPE__|' + $userId})
__HOPS__
RETURN __RESULT__
LIMIT 200
